import Foundation
import TestSupport
import Testing

/// What two independent decoders say of the files of PngSuite and of a browser's JPEG tests.
@Suite(
    .timeLimit(.minutes(15)), .enabled(if: SharedData.isAvailable, "the shared data is not there"))
struct SharedDataTests {
    private struct Expectation {
        let path: String
        let pillow: String
        let systemLibrary: String

        /// The judge compares colours; of four inks every reader makes its own.
        var isComparable: Bool { !path.contains("cmyk") && !path.contains("ycck") }
    }

    private static let folders = ["png/pngsuite/", "png/pngsuite-corrupt/", "jpeg/reftest/"]

    private func expectations(_ folder: URL) throws -> [Expectation] {
        let text = try String(contentsOf: folder.appending(path: "EXPECT.tsv"), encoding: .utf8)
        return text.split(separator: "\n").dropFirst().compactMap { line in
            let fields = line.split(separator: "\t", omittingEmptySubsequences: false).map(
                String.init)
            guard fields.count >= 11, SharedDataTests.folders.contains(where: fields[0].hasPrefix)
            else {
                return nil
            }
            return Expectation(path: fields[0], pillow: fields[3], systemLibrary: fields[10])
        }
    }

    @Test func verdictsAgreeWhereTwoDecodersDo() async throws {
        let folder = try #require(SharedData.folder)
        let expectations = try expectations(folder)
        #expect(expectations.count > 90)
        try await withOrigin { origin in
            var files: [String: [UInt8]] = [:]
            for expectation in expectations {
                files["/" + expectation.path] = Array(
                    try Data(contentsOf: folder.appending(path: expectation.path)))
            }
            origin.serve { [files] request in files[request.path].map { .image($0) } }
            try await withWorkspace { workspace in
                let run = try await workspace.prefetch(
                    expectations.map { origin.url("/" + $0.path) })
                var sources: [String: [UInt8]] = [:]
                for (index, expectation) in expectations.enumerated() {
                    let entry = try #require(run.report[line: index + 1])
                    if entry.outcome == "downloaded", expectation.isComparable {
                        sources[entry.key] = files["/" + expectation.path]
                    }
                    switch (expectation.pillow, expectation.systemLibrary) {
                    case ("ok", "ok"):
                        #expect(
                            entry.outcome == "downloaded",
                            "\(expectation.path): \(entry.verdict): \(entry.message ?? "")")
                    case ("error", "error"), ("error", ""):
                        #expect(entry.outcome == "failed", "\(expectation.path)")
                    default: break
                    }
                    if entry.outcome == "failed" {
                        #expect(
                            ["corrupt-image", "not-an-image", "unsupported-image"].contains(
                                entry.reason),
                            "\(expectation.path): \(entry.verdict)")
                    }
                }
                #expect(sources.count > 80)
                try await workspace.judge(sources: sources)
            }
        }
    }
}
