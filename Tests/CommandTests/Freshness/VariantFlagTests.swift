import TestSupport
import Testing

/// The refusals of `--variant` and `--store-original`.
@Suite(.timeLimit(.minutes(15)))
struct VariantFlagTests {
    private static let tooMany: [String] = (1...64).flatMap { ["--variant", "v\($0)=png"] }

    private static let cases: [(options: [String], message: String)] = [
        (["--variant", "web"], "--variant takes NAME=SPEC, like web=jpeg,q=60, not 'web'"),
        (["--variant", "=jpeg"], "--variant: a name is 1 to 64 letters, digits"),
        (["--variant", "we b=jpeg"], "the first a letter or digit, not 'we b'"),
        (["--variant", "main=jpeg"], "--variant main: that is the variant of the plain flags"),
        (
            ["--variant", "original=jpeg"],
            "--variant original: that name is for the bytes as they came"
        ),
        (["--variant", "web="], "--variant web: an item is empty; known are same, jpeg"),
        (["--variant", "web=jpg"], "--variant web: unknown item 'jpg' (did you mean 'jpeg'?)"),
        (["--variant", "web=png,q=80"], "--variant web: 'q=' has no effect on png"),
        (["--variant", "a=jpeg", "--variant", "a=png"], "--variant a is given twice"),
        (
            ["--variant", "original=original", "--store-original"],
            "--store-original keeps the variant original"
        ),
        (
            tooMany,
            "--variant: a run keeps at most 64 variants, with main"
        ),
        (
            ["--variant", "web=jpeg", "--check", "structure"],
            "--check structure needs --encode original"
        ),
    ]

    @Test(arguments: cases)
    func badVariantsAreWrongUsage(options: [String], message: String) async throws {
        try await withWorkspace { workspace in
            try workspace.manifest([])
            let result = try await workspace.command(["manifest.txt"] + options).run()
            #expect(result.status == 64, "\(result)")
            #expect(result.error.contains(message), "\(result)")
        }
    }
}
