import CodecFuzzing
import Codecs
import Foundation
import Glibc
import PrefetchModel
import Testing

/// The verdict, cost and result of every image of the shared data, for each path through the
/// codecs.
@Suite(.timeLimit(.minutes(15)), .enabled(if: TestData.isAvailable, "the shared data is not there"))
struct CorpusWayTests {
    /// An encoding with other settings that affect the path.
    struct Way: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let recipe: Recipe

        init(
            _ encoding: Recipe.Encoding, _ name: String = "",
            _ change: (inout Recipe) -> Void = { _ in }
        ) {
            var recipe = Recipe(encoding: encoding)
            change(&recipe)
            self.recipe = recipe
            testDescription = encoding.rawValue + name
        }
    }

    private static let ways = [
        Way(.same), Way(.jpeg), Way(.png), Way(.original),
        Way(.same, ", nothing stripped") { $0.stripping = .none },
        Way(.same, ", small effort") { $0.effort = .small },
    ]

    /// An image of the corpus with the correct verdict; nil if any rejection is correct.
    private struct Expectation {
        let path: String
        let isTakenByBoth: Bool
        let verdict: String?
    }

    private static let taken = "downloaded"
    private static let refusals: Set = [
        "failed/corrupt-image", "failed/not-an-image", "failed/unsupported-image",
        "failed/too-many-pixels",
    ]

    private static func rows(of file: URL) throws -> [[String]] {
        try String(contentsOf: file, encoding: .utf8).split(separator: "\n").dropFirst().map {
            $0.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
        }
    }

    /// Decisions for images on which two decoders or our codecs differ are stored beside the
    /// command's tests.
    private static let expectations = Result {
        let decisions = SourceTree.tests.appending(
            path: "CommandTests/Formats/differing-verdicts.tsv")
        let decided = Dictionary(
            uniqueKeysWithValues: try rows(of: decisions).map { ($0[0], $0[1]) })
        return try rows(of: TestData.root.appending(path: "EXPECT.tsv")).compactMap {
            fields -> Expectation? in
            guard fields.count >= 11, ["png", "jpeg", "jpeg?"].contains(fields[2]) else {
                return nil
            }
            let isTakenByBoth = fields[3] == "ok" && fields[10] == "ok"
            let isRefusedByBoth = Set(["error", "too-large"]).isSuperset(
                of: [fields[3], fields[10]])
            return Expectation(
                path: fields[0], isTakenByBoth: isTakenByBoth,
                verdict: isRefusedByBoth
                    ? nil : decided[fields[0]] ?? (isTakenByBoth ? taken : ""))
        }
    }

    private static func verdict(_ outcome: Result<Stored, CodecError>) -> String {
        switch outcome {
        case .success: taken
        case .failure(.notAnImage): "failed/not-an-image"
        case .failure(.unsupported), .failure(.limitExceeded): "failed/unsupported-image"
        case .failure(.tooManyPixels): "failed/too-many-pixels"
        case .failure(.corrupt): "failed/corrupt-image"
        case .failure(let error): "\(error)"
        }
    }

    /// The processor time of this thread, which decodes and encodes.
    private static func processorTime() -> Duration {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }

    @Test(arguments: ways)
    func verdictsMatchTableWithinFiveSeconds(way: Way) throws {
        var count = 0
        for expectation in try CorpusWayTests.expectations.get() {
            let source = try TestData.bytes(expectation.path)
            let start = CorpusWayTests.processorTime()
            let outcome = Result { () throws(CodecError) in try stored(source, way.recipe) }
            let time = CorpusWayTests.processorTime() - start
            #expect(time < .seconds(5) || TestData.hasSanitizer, "\(expectation.path)")
            let verdict = CorpusWayTests.verdict(outcome)
            if let expected = expectation.verdict {
                #expect(verdict == expected, "\(expectation.path): \(outcome)")
            } else {
                #expect(
                    CorpusWayTests.refusals.contains(verdict), "\(expectation.path): \(outcome)")
            }
            count += 1
        }
        #expect(count == 437 + 837 + 194)
    }

    /// Only small images, since each is decoded and encoded several times; `Scripts/check corpus`
    /// uses all.
    @Test(arguments: ways)
    func smallFilesKeepTheirPixels(way: Way) throws {
        var count = 0
        for expectation in try CorpusWayTests.expectations.get() where expectation.isTakenByBoth {
            let source = try TestData.bytes(expectation.path)
            try source.withUnsafeBytes { source in
                guard let header = try? header(of: source, limits: CodecLimits()),
                    header.pixels <= 1 << 14,
                    let invariants = try CodecInvariants(source, limits: CodecLimits())
                else { return }
                do {
                    try invariants.check(way.recipe)
                } catch {
                    Issue.record("\(expectation.path): \(error)")
                }
                count += 1
            }
        }
        #expect(count > 200)
    }
}
