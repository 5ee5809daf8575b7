import Codecs
import Glibc
import PrefetchModel
import Testing

@testable import Pipeline

@Suite(.timeLimit(.minutes(15)))
struct BodyFilterTests {
    init() {
        signal(SIGPIPE, SIG_IGN)
    }

    private static let limits = FilterProcess.BodyLimits(
        maximumBytes: 1 << 20, flag: "--max-filesize", time: .seconds(60),
        isCancelled: { false })

    private func base64(_ text: String) -> [UInt8]? {
        Array(text.utf8).withUnsafeBytes { [UInt8](base64: $0) }
    }

    /// RFC 4648 §10, and forms of the web.
    @Test(
        arguments: [
            ("", ""), ("Zg==", "f"), ("Zm8=", "fo"), ("Zm9v", "foo"), ("Zm9vYg==", "foob"),
            ("Zm9vYmE=", "fooba"), ("Zm9vYmFy", "foobar"), ("Zm9vYg", "foob"), ("Zm9\r\nv", "foo"),
            ("data:image/png;base64,Zm9v", "foo"),
        ])
    func decodesBase64(text: String, expected: String) {
        #expect(base64(text) == Array(expected.utf8))
    }

    @Test func decodesBothAlphabets() {
        #expect(base64("+/+/") == [0xFB, 0xFF, 0xBF])
        #expect(base64("-_-_") == [0xFB, 0xFF, 0xBF])
    }

    @Test(arguments: [
        "Z", "Zm9vY", "Zm9v=", "Zg===", "=", "Zg==Zg==", "Zm9*", "data:x", "\u{89}PNG",
    ])
    func refusesOtherText(text: String) {
        #expect(base64(text) == nil)
    }

    @Test func parsesCommandsAndNames() throws {
        #expect(BodyFilter("base64") == .base64)
        #expect(BodyFilter("rev") == .command("rev", speaksFrames: false))
        #expect(BodyFilter("frames:rev") == .command("rev", speaksFrames: true))
        #expect(BodyFilter("") == nil && BodyFilter("frames: ") == nil)
        let secret = try #require(BodyFilter("decrypt --key s3cret"))
        #expect(!secret.name.description.contains("s3cret"))
        var recipe = Recipe()
        recipe.bodyFilter = secret.name
        #expect(Recipe(canonicalText: recipe.canonicalText) == recipe)
        let original = Recipe.original(filteredBy: .base64)
        #expect(original.canonicalText == "original;filter=base64")
        #expect(Recipe(canonicalText: "original;filter=base64") == original)
        #expect(!Recipe.haveSameFilter("same;q=1;filter=a", "same;q=1;filter=b"))
        #expect(!Recipe.haveSameFilter("same;q=1;filter=a", "original"))
        #expect(Recipe.haveSameFilter("same;q=1", "original"))
    }

    private func run(
        _ command: String, _ body: [UInt8], _ limits: FilterProcess.BodyLimits = Self.limits,
        reserve: (Int) -> Void = { _ in }
    ) throws -> [UInt8] {
        let process = try FilterProcess(command)
        return try body.withUnsafeBytes { try process.filterAndEnd($0, limits, reserve) }
    }

    @Test func largeBodiesPassBothWays() throws {
        let body = (0..<900_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        #expect(try run("cat", body) == body)
        // A command need not read its input.
        #expect(try run("exec <&-; echo x", body) == Array("x\n".utf8))
    }

    @Test(
        arguments: [
            ("exit 3", "exit status 3"), ("kill -9 $$", "ended by signal 9"),
            ("yes", "more than 1.00 MiB (--max-filesize)"),
        ])
    func failuresAreNamed(command: String, message: String) {
        #expect(throws: Failure(.bodyFilter, message)) { try run(command, [1]) }
    }

    /// Also of a command that closes its output and runs on.
    @Test(arguments: ["sleep 600", "exec >&-; sleep 600"])
    func timeIsLimited(command: String) {
        let limits = FilterProcess.BodyLimits(
            maximumBytes: 1, flag: "", time: .milliseconds(200), isCancelled: { false })
        #expect(throws: Failure.self) { try run(command, [1], limits) }
    }

    @Test func cancellationEndsACommand() {
        let limits = FilterProcess.BodyLimits(
            maximumBytes: 1, flag: "", time: .seconds(600), isCancelled: { true })
        #expect {
            _ = try run("sleep 600", [1], limits)
        } throws: { error in
            if case CodecError.cancelled = error { true } else { false }
        }
    }

    private func frame(_ process: FilterProcess, _ body: [UInt8]) throws -> [UInt8]? {
        try body.withUnsafeBytes { try process.filterFrame($0, Self.limits) { _ in } }
            .map { Array($0) }
    }

    @Test func aProcessServesManyFrames() throws {
        // Frames of `cat` are answers with the same bytes.
        let process = try FilterProcess("cat")
        for count in [0, 1, 100_000, 3] {
            let body = [UInt8](repeating: 7, count: count)
            #expect(try frame(process, body) == body)
        }
        process.finish(by: .now + .seconds(60))
    }

    @Test func aFrameMayHaveNoImage() throws {
        let process = try FilterProcess("head -c 5 >/dev/null; printf '\\377\\377\\377\\377'; cat")
        #expect(try frame(process, [1]) == nil)
        #expect(try frame(process, [2]) == [2])
        process.finish(by: .now + .seconds(60))
    }

    /// One that answers twice would give the next body a wrong image.
    @Test func aProcessOutOfStepIsSeen() throws {
        let process = try FilterProcess("exec sleep 600")
        #expect(process.isInStep)
        process.endInput()
        #expect(!process.isInStep)
        process.kill()
        let talkative = try FilterProcess("echo x; exec sleep 600")
        while talkative.isInStep {}
        talkative.kill()
        // A wait for its answer would end with the limit of time.
        let deaf = try FilterProcess("exec <&-; exec sleep 600")
        while deaf.isInStep {}
        deaf.kill()
    }

    @Test func processesThatEndEarlyAreReplaced() throws {
        var configuration = RunConfiguration(userAgent: "", manifests: [], codecWorkers: 1)
        // Each process answers one frame of two bytes.
        let filter = try #require(BodyFilter("frames:head -c 6"))
        configuration.bodies.filters[filter.name] = filter
        let filters = BodyFilters(configuration, Cancellation())
        for number in 0..<5 {
            let body = [UInt8(number), 7]
            let image = try body.withUnsafeBytes { bytes in
                try filters.image(of: bytes, by: filter.name) { _ in }
            }
            #expect(Array(image) == body)
        }
        filters.finish()
    }

    /// Frames of a known size take just that; other answers at most half as much again.
    @Test func answersAreCountedAsTheyGrow() throws {
        var reserved = 0
        let body = [UInt8](repeating: 7, count: 900_000)
        _ = try run("cat", body) { reserved += $0 }
        #expect(reserved >= 900_000 && reserved < 1_400_000)
        reserved = 0
        let process = try FilterProcess("cat")
        _ = try body.withUnsafeBytes { try process.filterFrame($0, Self.limits) { reserved += $0 } }
        #expect(reserved >= 900_004 && reserved < 1_000_000)
        process.finish(by: .now + .seconds(60))
    }

    @Test func memoryLimitsAnswers() throws {
        var configuration = RunConfiguration(userAgent: "", manifests: [], codecWorkers: 1)
        configuration.images.memory = .mebibytes(32)
        let filter = try #require(BodyFilter("yes"))
        configuration.bodies.filters[filter.name] = filter
        let filters = BodyFilters(configuration, Cancellation())
        let limit = configuration.images.bodyBudget
        #expect(throws: Failure(.bodyFilter, "more than \(limit) (a quarter of --memory)")) {
            try [1].withUnsafeBytes { bytes in
                _ = try filters.image(of: bytes, by: filter.name) { _ in }
            }
        }
        filters.finish()
    }

    @Test func aFrameNeedsAnAnswer() throws {
        let process = try FilterProcess("exit 0")
        #expect(throws: Failure.self) { try frame(process, [1]) }
        process.kill()
    }
}
