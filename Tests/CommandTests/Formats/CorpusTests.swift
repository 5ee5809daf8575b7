import Foundation
import TestSupport
import Testing

/// The program's verdict on every image of the shared data, well-formed, odd, damaged and hostile,
/// compared with two independent decoders. `CorpusWayTests` covers all six ways through the codecs
/// alone; this suite takes one through the program.
@Suite(
    .timeLimit(.minutes(15)), .enabled(if: SharedData.isAvailable, "the shared data is not there"))
struct CorpusTests {

    /// A picture of 33 megapixels is larger in the midst of becoming another format than the
    /// default allows.
    private static func options(_ encoding: String) -> [String] {
        ["--memory", "512MiB", "--encode", encoding]
    }

    /// The accepted reasons for a file without complete data.
    private static let refusals: Set = [
        "failed/corrupt-image", "failed/not-an-image", "failed/unsupported-image",
        "failed/too-many-pixels",
    ]

    /// For JPEG the judge compares with a tolerance.
    @Test(arguments: ["same", "jpeg"])
    func takesWhatTwoDecodersTake(way: String) async throws {
        let files = try Corpus.files(.taken)
        #expect(files.count == 437)
        let decisions = try Corpus.decisions()
        try await withOrigin { origin in
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let (run, entries) = try await workspace.prefetch(
                    files, from: origin, CorpusTests.options(way))
                #expect([0, 1].contains(run.result.status), "\(run.result)")
                var taken = 0
                var sources: [String: [UInt8]] = [:]
                for (file, entry) in zip(files, entries) {
                    if entry.outcome == "downloaded" {
                        taken += 1
                        if CorpusTests.isComparable(file, entry) {
                            sources[entry.key] = try Corpus.bytes(of: file)
                        }
                    } else {
                        let decision = decisions.first { $0.path == file.path }
                        #expect(
                            entry.verdict == decision?.verdict,
                            "\(file): \(entry.message ?? "")")
                    }
                }
                #expect(Double(taken) >= 0.995 * Double(files.count))
                try await workspace.judge(sources: sources)
            }
        }
    }

    /// Readers differ in the colours of CMYK, a mean of few pixels is meaningless, and the judge
    /// has no memory limit.
    private static func isComparable(_ file: Corpus.File, _ entry: Report.Entry) -> Bool {
        let pixels = (entry.width ?? 0) * (entry.height ?? 0)
        return !file.path.contains("cmyk") && !file.path.contains("ycck")
            && (64...16_000_000).contains(pixels)
    }

    /// The table decides where they differ.
    @Test func refusesWhatTwoDecodersRefuse() async throws {
        let (refused, differing) = (try Corpus.files(.refused), try Corpus.files(.differing))
        #expect(refused.count == 837 && differing.count == 194)
        let decisions = Dictionary(
            uniqueKeysWithValues: try Corpus.decisions().map { ($0.path, $0) })
        try await withOrigin { origin in
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let (run, entries) = try await workspace.prefetch(
                    refused + differing, from: origin, CorpusTests.options("same"))
                #expect(run.result.status == 1, "\(run.result)")
                for (file, entry) in zip(refused, entries) {
                    #expect(CorpusTests.refusals.contains(entry.verdict), "\(file)")
                }
                for (file, entry) in zip(differing, entries.dropFirst(refused.count)) {
                    #expect(
                        entry.verdict == decisions[file.path]?.verdict,
                        "\(file): \(entry.message ?? "")")
                }
                try workspace.removeCache()
            }
        }
        // It names no other file, and gives reasons.
        let files = try Corpus.files().filter { $0.agreement != .refused }
        for decision in decisions.values {
            let file = files.first { $0.path == decision.path }
            #expect(file != nil, "\(decision.path)")
            // Where both take the file, only a refusal needs words.
            #expect(
                file?.agreement == .differing || decision.verdict != "downloaded",
                "\(decision.path)")
            #expect(!decision.reason.isEmpty, "\(decision.path)")
        }
    }

    /// `--check structure` skips decoding, and accepts every file that decodes.
    @Test func theCheckOfStructureTakesWhateverDecodes() async throws {
        let files = try Corpus.files()
        let options = CorpusTests.options("original") + ["--check"]
        try await withOrigin { origin in
            var taken: [Set<String>] = []
            for check in ["decode", "structure"] {
                try await withWorkspace(without: [.retries, .probes]) { workspace in
                    let (_, entries) = try await workspace.prefetch(
                        files, from: origin, options + [check])
                    taken.append(Set(entries.filter { $0.outcome == "downloaded" }.map(\.url)))
                    try workspace.removeCache()
                }
            }
            #expect(taken[0].count > 437)
            #expect(taken[0].subtracting(taken[1]).isEmpty)
        }
    }

    @Test func pixelsAreThoseOfTheReferenceExactly() async throws {
        let files = try Corpus.files().filter { $0.pixelDigest != nil && $0.isUpright }
        #expect(files.count > 220)
        let decisions = try Corpus.decisions()
        try await withOrigin { origin in
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let (_, entries) = try await workspace.prefetch(
                    files, from: origin, ["--encode", "png"])
                var stored: [(file: Corpus.File, path: String)] = []
                for (file, entry) in zip(files, entries) {
                    if let path = entry.path {
                        stored.append((file, workspace.cache + "/" + path))
                    } else {
                        let decision = decisions.first { $0.path == file.path }
                        #expect(entry.verdict == decision?.verdict, "\(file)")
                    }
                }
                let digests = try await CorpusTests.pixelDigests(
                    of: stored.map(\.path), in: workspace)
                #expect(digests.count == stored.count)
                for (picture, digest) in zip(stored, digests) {
                    #expect(digest == picture.file.pixelDigest, "\(picture.file)")
                }
            }
        }
    }

    /// By Pillow, as the reference's own.
    private static func pixelDigests(
        of paths: [String], in workspace: Workspace
    ) async throws -> [String] {
        var command = Command(
            executable: "/usr/bin/python3",
            arguments: ["-I", "-B", Corpus.beside("pixel-digests.py").path],
            environment: ["PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"], folder: workspace.folder)
        command.input = .bytes(Array(paths.map { $0 + "\n" }.joined().utf8))
        let result = try await command.run()
        #expect(result.status == 0, "\(result)")
        return result.outputLines
    }
}
