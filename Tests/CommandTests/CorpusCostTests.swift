import Foundation
import TestSupport
import Testing

/// What the images of the shared data cost at most; a sanitizer takes several times as much.
@Suite(
    .timeLimit(.minutes(15)), .enabled(if: SharedData.isAvailable, "the shared data is not there"),
    .enabled(if: !Sanitizer.isActive, "costs are not measured under a sanitizer"))
struct CorpusCostTests {
    private static let ways = ["same", "jpeg", "png", "original", "same --png-effort small"]

    private static func options(_ way: String) -> [String] {
        ["-j", "1", "--encode"] + way.split(separator: " ").map(String.init)
    }

    @Test(arguments: ways)
    func noFileTakesFiveSeconds(way: String) async throws {
        let files = try Corpus.files()
        try await withOrigin { origin in
            try await withWorkspace { workspace in
                let (_, entries) = try await workspace.prefetch(
                    files, from: origin, CorpusCostTests.options(way))
                for (file, entry) in zip(files, entries) {
                    let milliseconds =
                        (entry.decodeMilliseconds ?? 0) + (entry.encodeMilliseconds ?? 0)
                    #expect(milliseconds < 5000, "\(file)")
                }
                try workspace.removeCache()
            }
        }
    }

    /// One by one, since several are in work at once on a machine of many cores.
    @Test(arguments: ways)
    func noFileTakes200Megabytes(way: String) async throws {
        let files = try Corpus.files().sorted { $0.pixels > $1.pixels }.prefix(16)
        try await withOrigin { origin in
            try await withWorkspace { workspace in
                for file in files {
                    let (run, _) = try await workspace.prefetch(
                        [file], from: origin, CorpusCostTests.options(way))
                    #expect(run.result.peakMemoryInBytes < 200_000_000, "\(file)")
                }
                try workspace.removeCache()
            }
        }
    }

    /// The report gives no time of what is refused, so all are measured together.
    @Test func refusingTakesNeitherTimeNorMemory() async throws {
        let files = try Corpus.files(.refused)
        try await withOrigin { origin in
            try await withWorkspace { workspace in
                let (run, _) = try await workspace.prefetch(files, from: origin, ["-j", "1"])
                #expect(run.result.processorTime < .seconds(5))
                #expect(run.result.peakMemoryInBytes < 200_000_000)
            }
        }
    }

    @Test func aBombTakesHalfASecondAnd50MegabytesAtMost() async throws {
        let bombs = try Corpus.files().filter { $0.path.hasPrefix("bombs/") }
        #expect(bombs.count > 4)
        try await withOrigin { origin in
            try await withWorkspace { workspace in
                let plain = try await workspace.prefetch(origin.serveImages(1)).result
                for bomb in bombs {
                    let (run, _) = try await workspace.prefetch(
                        [bomb], from: origin, ["-j", "1"])
                    let name = "\(bomb)"
                    #expect(
                        run.result.processorTime < plain.processorTime + .milliseconds(500),
                        "\(name)")
                    #expect(
                        run.result.peakMemoryInBytes < plain.peakMemoryInBytes + 50_000_000,
                        "\(name)")
                }
                try workspace.removeCache()
            }
        }
    }
}
