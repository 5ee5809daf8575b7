import ArgumentParser
import Testing

@testable import prefetch

/// The fast parser of `get` accepts arguments as the full parser does, and leaves all others to it.
struct GetArgumentTests {
    @Test(arguments: [
        ["https://a.example/1.jpg"], ["https://a.example/1.jpg", "--stale"],
        ["--cache-dir", "d", "--json", "--no-check", "u"], ["--cache-dir=--help", "u"],
        ["--variant", "web", "u"], ["--recipe=--version", "u"], ["--batch"],
        ["--batch", "--existing"], ["u", "--existing"],
        ["--batch", "--format", "text", "--base-url", "https://a.example/"], ["--", "--version"],
        ["--", "-h"], ["help"], ["run"], ["get", "u"], ["u", "v"], [], ["--batch", "u"],
        ["u", "--format", "text"], ["--format", "none", "--batch"], ["u", "--variant"],
        ["--recipe", "r", "--variant", "v", "u"], ["--help"], ["-h"], ["u", "--help"], ["u", "-h"],
        ["--version"], ["u", "--version"], ["--generate-completion-script", "bash"],
        ["--generate-completion-script=bash", "u"], ["---completion", "get", "--", "u"],
        ["--experimental-dump-help"], ["--help-hidden"], ["u", "--unknown"],
    ])
    func parsesLikeFullCommand(arguments: [String]) {
        let whole = try? Prefetch.parseAsRoot(["get"] + arguments)
        let alone = try? GetCommand.parse(arguments)
        #expect(alone.map(values) == (whole as? GetCommand).map(values))
    }

    private func values(_ command: GetCommand) -> [String?] {
        [
            command.url, command.cache.place.directory, command.wanted.variant,
            command.wanted.recipe,
            "\(command.stale)", "\(command.skipsCheck)", "\(command.json)", "\(command.batch)",
            "\(command.existing)", "\(command.input.format)", command.input.baseURL,
        ]
    }
}
