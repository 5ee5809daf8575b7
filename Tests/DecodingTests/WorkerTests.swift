internal import CSandbox
import Codecs
import Glibc
import PrefetchModel
import TestSupport
import Testing
import Threading

@testable import Decoding

private let probe = Workspace.product("sandbox-probe")

/// Workers, without a pool.
@Suite(
    .timeLimit(.minutes(15)), .enabled(if: !Sanitizer.isActive, "a sanitizer needs more calls"),
    .enabled("this machine has all walls") {
        try await Command(
            executable: probe, arguments: ["walls"], environment: [:], folder: "/"
        ).run().status == 0
    })
struct WorkerTests {
    /// The ends of images in one worker, each as the error; nil for a success.
    private static func ends(
        of images: [[UInt8]], by recipes: [Recipe], leftOut: Int32
    ) throws -> [String?] {
        let launch = WorkerLaunch(
            program: Workspace.binary,
            variables: WorkerLaunch().variables
                + ["LD_PRELOAD=\(Workspace.product("libFaultyJPEG.so"))"],
            tests: true, libraries: .all, leftOut: leftOut)
        let limit = ByteCount.mebibytes(256)
        let rules = DecodingRules(
            header: HeaderRules(recipes: recipes, others: .store, memory: limit))
        let budget = MemoryBudget(total: limit)
        var worker = try WorkerProcess(rules, results: limit.bytes, launch)
        if let failure = worker.startFailure() { return [failure] }
        var ends: [String?] = []
        for image in images {
            if worker.hasEnded {
                worker = try WorkerProcess(rules, results: limit.bytes, launch)
                if let failure = worker.startFailure() { return ends + [failure] }
            }
            let end = Result { () throws(CodecError) in
                try image.span.withUnsafeBytes { bytes throws(CodecError) in
                    try worker.perform(
                        .new(recipes), on: WorkerImage(bytes: bytes), set: 1, budget: budget,
                        reserved: 0, time: .seconds(60), cancellation: Cancellation())
                }
            }
            switch end {
            case .success: ends.append(nil)
            case .failure(let error): ends.append("\(error)")
            }
        }
        return ends
    }

    /// Decoding needs every allowed call: without it, a worker dies at a picture of the self-test
    /// or of this list.
    @Test func everyAllowedCallIsNeeded() throws {
        let svg =
            Array(
                "<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'>".utf8)
            + Array(repeating: UInt8(ascii: " "), count: 300) + Array("</svg>".utf8)
        let images = [
            Fixtures.png(width: 1500, height: 1000, isNoise: true), svg,
            try Fixtures.file("baseline.jpg"), try Fixtures.jpegForFaultyDecoder("abort"),
            try Fixtures.jpegForFaultyDecoder("exit"), try Fixtures.jpegForFaultyDecoder("print"),
            try Fixtures.jpegForFaultyDecoder("free"),
        ]
        var thumbnail = Recipe(encoding: .webp)
        thumbnail.transformations = [.resize(.fit(width: 300, height: 300))]
        let recipes = [
            Recipe(encoding: .auto), thumbnail, Recipe(encoding: .webp), Recipe(encoding: .png),
        ]
        let all = try WorkerTests.ends(of: images, by: recipes, leftOut: -1)
        #expect(
            all == [
                nil, nil, nil, "its decoder crashed (SIGABRT)",
                "its decoder ended with status 7", nil, "its decoder crashed (SIGABRT)",
            ])
        for index in 0..<csandbox_call_count() {
            let name = String(cString: csandbox_call_at(index).name)
            let ends = try WorkerTests.ends(of: images, by: recipes, leftOut: Int32(index))
            #expect(
                ends.contains("its decoder made a forbidden system call (SIGSYS)"),
                "\(name): \(ends)")
        }
    }

    /// Hostile workers send valid results, and any changes of them.
    @Test func survivesHostileWorkers() throws {
        let limit = ByteCount.mebibytes(8)
        let recipe = Recipe(encoding: .jpeg)
        let rules = DecodingRules(header: HeaderRules(recipes: [recipe], memory: limit))
        let image = try Fixtures.file("baseline.jpg")
        let entry = try image.withUnsafeBytes { bytes in
            try rules.perform(.new([recipe]), on: bytes, cancellation: nil) { _ in true }
        }
        // The hostile worker gets the result that it shall send behind its image.
        var writer = WireWriter()
        var results: [UInt8] = []
        writer.put(entry) { image in
            image.withUnsafeBytes { results += $0 }
            return 4096
        }
        try #require(writer.bytes.count < 4096)
        var answer = image + Array(repeating: 0, count: 65_536 - image.count)
        answer += writer.bytes + Array(repeating: 0, count: 4096 - writer.bytes.count)
        answer += results
        let budget = MemoryBudget(total: limit)
        var (accepted, refused) = (0, 0)
        for seed in Int32(0)..<300 {
            let worker = try WorkerProcess(
                rules, results: 1 << 20,
                WorkerLaunch(program: probe, leftOut: seed))
            guard worker.startFailure() == nil else {
                refused += 1
                continue
            }
            for _ in 0..<20 where !worker.hasEnded {
                do {
                    let entry = try answer.withUnsafeBytes { bytes in
                        try worker.perform(
                            .new([recipe]), on: WorkerImage(bytes: bytes),
                            set: writer.bytes.count, budget: budget, reserved: 0,
                            time: .seconds(1), cancellation: Cancellation())
                    }
                    #expect(entry.results.count == 1)
                    #expect(entry.placeholder.map { (5...25).contains($0.thumbHash.count) } ?? true)
                    #expect(entry.warning.map { !$0.text.contains("\n") } ?? true)
                    if case .success(let image)? = entry.results.first,
                        case .encoded(let bytes) = image.output
                    {
                        #expect(bytes.withUnsafeBytes { sniffed($0) } == image.format)
                    }
                    accepted += 1
                } catch {
                    refused += 1
                }
            }
            worker.end()
        }
        #expect(accepted > 100 && refused > 100, "\(accepted) accepted, \(refused) refused")
        // Nothing of the memory was lost.
        #expect(budget.takeAtOnce(limit.bytes))
    }
}
