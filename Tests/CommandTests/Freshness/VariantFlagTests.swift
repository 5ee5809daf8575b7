import TestSupport
import Testing

/// The refusals of `--variant` and `--store-original`.
@Suite(.timeLimit(.minutes(15)))
struct VariantFlagTests {
    private static let tooMany: [String] = (1...64).flatMap { ["--variant", "v\($0)=png"] }

    private static let cases: [(options: [String], message: String)] = [
        (["--variant", "web"], "--variant takes NAME=SPEC, like web=jpeg,q=60, not 'web'"),
        (["--variant", "=jpeg"], "--variant: invalid name '': a name has 1 to 64 letters, digits"),
        (["--variant", "we b=jpeg"], "--variant: invalid name 'we b': a name has"),
        (["--variant", "main=jpeg"], "--variant main: the plain flags, like --encode"),
        (
            ["--variant", "original=jpeg"],
            "--variant original: this name is reserved; --store-original"
        ),
        (["--variant", "web="], "--variant web: an item is empty; known are same, jpeg"),
        (["--variant", "web=jpg"], "--variant web: unknown item 'jpg' (did you mean 'jpeg'?)"),
        (["--variant", "web=png,q=80"], "--variant web: 'q=' has no effect on png"),
        (["--variant", "a=jpeg", "--variant", "a=png"], "--variant a is given twice"),
        (
            ["--variant", "original=original", "--store-original"],
            "--variant original cannot be combined with --store-original"
        ),
        (
            tooMany,
            "--variant: at most 64 variants, including main"
        ),
        (
            ["--variant", "web=jpeg", "--check", "structure"],
            "--check structure needs --encode original"
        ),
    ]

    @Test(arguments: cases)
    func invalidVariantsAreWrongUsage(options: [String], message: String) async throws {
        try await withWorkspace { workspace in
            try workspace.manifest([])
            let result = try await workspace.command(["manifest.txt"] + options).run()
            #expect(result.status == 64, "\(result)")
            #expect(result.error.contains(message), "\(result)")
        }
    }
}
