import Testing

/// The values and combinations of flags that `run` refuses before it does anything.
@Suite(.timeLimit(.minutes(15)))
struct WrongUsageTests {
    private static let manyVariants: [String] = (1...64).flatMap { ["--variant", "v\($0)=png"] }

    private static let named: [(arguments: [String], message: String)] = [
        // The parser only says that a value is wrong.
        (["--ttl", "5x"], "it takes a duration like 500ms, 90s, 5m, 12h or 30d"),
        (["--timeout=soon"], "it takes a duration like"),
        (["--max-filesize", "5q"], "it takes a size like 500000, 200KiB, 64MiB or 2GB"),
        (["--strip", "some"], "one of 'all', 'safe' or 'none'"),
        // Variants
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
        (manyVariants, "--variant: 1 to 64 variants, including main"),
        (["--variant", "a=12y"], "--variant a: '12y' is not a size like"),
        (
            ["--variant", "web=jpeg", "--check", "structure"],
            "--check structure needs --encode original"
        ),
        // Sizes and steps
        (["--resize", "0x5"], "--resize takes a size like"),
        (["--transform", "flip=x"], "--transform: 'flip=' takes h or v, not 'x'"),
        (["--transform", "q=5"], "--transform: unknown step 'q=5'; the steps are sizes, "),
        (["--transform", "gray,flip=h"], "unknown step 'gray' (did you mean 'grey'?)"),
        (["--transform", "blur=2, circle"], "unknown step ' circle' (did you mean 'circle'?)"),
        (
            ["--encode", "original", "--resize", "5"],
            "--encode original stores the downloaded bytes"
        ),
        (["--linear"], "--linear needs a size"),
        (["--scale-down-pixels", "0"], "--scale-down-pixels must be between"),
        // The check of sources
        (["--check", "structure"], "--encode original"),
        (["--check", "structure", "--encode", "same"], "--encode original"),
        (["--check", "structure", "--encode", "jpeg"], "--encode original"),
        (["--check", "structure", "--encode", "png"], "--encode original"),
    ]

    @Test(arguments: named)
    func theMessageNamesTheMistake(arguments: [String], message: String) throws {
        let refusal = try #require(try ParsedRun.refusal(arguments))
        #expect(refusal.status == 64)
        #expect(refusal.text.contains(message), "\(refusal.text)")
    }

    @Test(arguments: [
        ["--background", "#12345"], ["--background", "mauve"], ["--background", "+12"],
        ["--max-decode-time", "0s"], ["--max-stored-bytes", "0"], ["--max-stored-bytes", "much"],
        ["--strip", "some"], ["--strip", "all", "--encode", "original"],
        ["--min-size", "640"], ["--min-size", "640x"], ["--min-size", "-1x5"],
        ["--min-size", "1x2x3"], ["--max-aspect", "0.5"], ["--max-aspect", "nan"],
        ["--max-aspect", "inf"], ["--min-bytes", "many"],
        ["--limit", "0"], ["--deadline", "0"], ["--deadline", "x"], ["--until", "24:00"],
        ["--until", "6"], ["--until", "006:00"], ["--until", "06:60"], ["--until", "6:0"],
        ["--jitter", "x"],
        ["--limit-rate=100"], ["--host-rate=0"], ["--host-rate=1/d"], ["--host-rate=-1"],
        ["--host-rate=1/s/s"], ["--host-rate=0.000001/h"],
    ])
    func theMessageNamesTheFlag(arguments: [String]) throws {
        let refusal = try #require(try ParsedRun.refusal(arguments))
        #expect(refusal.status == 64)
        #expect(refusal.text.contains(arguments[0].prefix { $0 != "=" }), "\(refusal.text)")
    }

    @Test(arguments: [
        ["--header", "SECRET"], ["--header", "X Y: SECRET"], ["--header", "Range: SECRET"],
        ["--header", "X: a\u{1}SECRET"], ["--user", "SECRET"], ["--user", "a:SECRET\n"],
        ["--proxy", "ftp://a:SECRET@b"], ["--proxy", "http://a:SECRET@"],
        ["--resolve", "a:b:SECRET"], ["--user-agent", "SECRET\u{1}"], ["-4", "-6"],
        ["--deny-private", "--allow-link-local"], ["--netrc", "--netrc-file", "a"],
        ["--cookie-jar", ""], ["--insecure", "--cacert", "a"],
    ])
    func valuesOfRequestsAreNotRepeated(arguments: [String]) throws {
        let refusal = try #require(try ParsedRun.refusal(arguments))
        #expect(refusal.status == 64)
        #expect(!"\(refusal.text) \(refusal.hint ?? "")".contains("SECRET"), "\(refusal.text)")
        #expect(
            refusal.text.contains(arguments[0]) || refusal.text.contains("--ipv4"),
            "\(refusal.text)")
    }
}
