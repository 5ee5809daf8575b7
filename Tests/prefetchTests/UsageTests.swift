import Glibc
import PrefetchModel
import Testing

@testable import Manifests
@testable import prefetch

/// Arguments that commands refuse, and hints about them; ``WrongUsageTests`` has the values of
/// flags of `run`. Such a command ends before it opens a cache.
struct UsageTests {
    private static let isUsageError: Int32 = 64

    /// Arguments with a part of the message.
    private static let run: [([String], String)] = [
        (["--no-such-flag"], "Missing expected argument '<manifest> ...'"),
        (["entries", "--no-such-flag"], "Unknown option '--no-such-flag'"),
        (["run", "-v"], "Missing expected argument '<manifest> ...'"),
        (["entries", "--order", "sideways"], "'fifo', 'lifo', 'random' or 'random=SEED'"),
        (["entries", "-j", "0"], "--jobs must be between 1 and 10000"),
        (["entries", "-j", "many"], "The value 'many' is invalid for '-j <n>'"),
        (["entries", "--jobs", "x"], "The value 'x' is invalid for '--jobs <n>'"),
        (["entries", "--timeout", "soon"], "'--timeout <duration>'"),
        (["entries", "--quality", "101"], "--quality must be between 1 and 100"),
        (["entries", "--max-filesize", "-1"], "'--max-filesize <size>'"),
        (["entries", "--encode", "bitmap"], "'--encode <format>'"),
        (["entries", "--include", "a b"], "--include takes"),
        (["entries", "--exclude", "a b"], "--exclude takes"),
        (["entries", "--robots-directives", "a b"], "--robots-directives takes"),
        (["entries", "--absolute-paths"], "--absolute-paths needs --report"),
        (["entries", "--junit", "-"], "--junit takes a file"),
        (["entries", "--html", "-"], "--html takes a file"),
        (["a.csv", "--column", "key"], "--column takes FIELD=NAME"),
        (["a.csv", "--column", "no=1"], "--column: unknown field 'no'"),
        (["a.csv", "--format", "xls"], "'--format <format>'"),
    ]

    /// Statuses of responses without an image.
    private static let statuses = ["100", "204", "206", "301", "404,304", "503", "40x"].map {
        (["entries", "--accept-status", $0], "--accept-status")
    }

    private static let pruneRules = [
        ("unlisted-for", "takes a duration"), ("max-size=lots", "takes a size"),
        ("gone=yes", "takes no value"), ("everything", "unknown rule"),
        ("low-water=90%", "nothing"), ("max-files=-1", "takes a number"),
        ("low-water=0%,gone", "takes a percentage"), ("max-size=20", " unit"),
        ("unlisted-for=30", " unit"),
    ].map { (["http://localhost:1/a", "--prune", $0.0], $0.1) }

    /// Modes that give others too much, or the owner too little.
    private static let modes = [
        "0666", "0646", "0622", "0440", "0400", "0700", "755", "1644", "0o644", "", "u+r",
    ].flatMap { mode in
        [["--mode", mode, "http://localhost:1/a"], ["chmod", mode]].map {
            ($0, "one of '0600', '0640' or '0644'")
        }
    }

    private static let commands: [([String], String)] = [
        (["get"], "name a URL, or read a list with --batch"),
        (["get", "u", "--batch"], "--batch reads standard input"),
        (["get", "u", "--base-url", "http://a.example/"], "--base-url needs --batch"),
        (["get", "u", "--format", "text"], "--format needs --batch"),
        (["get", "u", "--column", "key=id"], "--column needs --batch"),
        (["get", "u", "--timeout", "3s"], "--timeout needs --sink"),
        (["prune", "--history", "3d", "--no-header"], "--no-header needs --unlisted"),
        (["get", "--batch", "--base-url", "x"], "--base-url takes"),
        (["history", "-n", "0"], "--limit (-n) must be at least 1"),
        (["history", "--limit", "0"], "--limit (-n) must be at least 1"),
        (["history", "--since", "yesterday"], "'--since <duration>'"),
        (["history", "--since", "-1h"], "'--since <duration>'"),
        (["list", "--fresh", "--expired"], "--fresh and --expired cannot be combined"),
        (["list", "--limit", "0"], "at least 1"), (["list", "--format", "jpg2"], "--format"),
        (["list", "--sort", "size"], "--sort"), (["list", "--older-than", "1y"], "duration like"),
        (["list", "--min-bytes", "-1"], "--min-bytes"),
        (["failed", "list", "--reason", "bad-luck"], "'--reason <reason>'"),
        (["failed", "list", "--urls", "--json"], "--json and --urls cannot be combined"),
        (["put", "https://example.com/a"], "Missing expected argument '<file>'"),
        (["put", "u", "a.png", "--lock", "skip"], "--lock takes fail, wait"),
        (["put", "u", "a.png", "--quality", "0"], "--quality must be"),
        (["attr", "set", "u", "n"], "give the value once"), (["attr", "set", "u"], "'<name>'"),
        (["attr", "set", "u", "n", "v", "--file", "value"], "give the value once"),
        (["attr", "set", "u", "n", "v", "--lock", "skip"], "--lock takes fail, wait"),
        (["attr", "rm", "u"], "'<name> ...'"), (["attr", "get", "u"], "'<name>'"),
        (["attr", "list"], "'<url>'"), (["attr", "set", "u", "n", "v", "w"], "argument 'w'"),
        (["prune"], "name a rule, for example"),
        (["merge", "--check", "3"], "--check needs the summaries of the shards"),
        (
            ["merge", "--check", "3", "s.json", "--json"],
            "--check and --json cannot be combined"
        ),
        (["remove"], "name URLs, or pick images with --host, --failed or --all"),
        (["remove", "--variant", "main"], "or --all (every image)"),
        (["remove", "--all", "--failed"], "--all cannot be combined with --host or --failed"),
        (
            ["remove", "--all", "https://example.com/a"],
            "URLs cannot be combined with --host, --failed or --all"
        ),
        (
            ["remove", "--host", "a", "--batch"],
            "URLs cannot be combined with --host, --failed or --all"
        ),
        (["remove", "--batch", "https://example.com/a"], "--batch reads URLs from standard input"),
        (
            ["remove", "--base-url", "https://example.com/", "x"],
            "--base-url needs --batch"
        ),
        (["remove", "--all", "--lock", "skip"], "--lock takes fail, wait or wait=DURATION here"),
        (["verify", "--since", "yesterday"], "--since"),
        (["verify", "--since", "2026-02-31"], "--since"),
        (["verify", "--since", "2026-01-01x"], "--since"), (["verify", "--since", ""], "--since"),
        (["verify", "--time-limit", "0s"], "--time-limit"),
        (["verify", "--time-limit", "x"], "--time-limit"),
        (["verify", "--sample=0%"], "--sample"), (["verify", "--sample=101%"], "--sample"),
        (["verify", "--sample=5"], "--sample"), (["verify", "--sample=-1%"], "--sample"),
        (["verify", "--sample=x"], "--sample"),
    ]

    @Test(arguments: run + statuses + pruneRules + modes + commands)
    func invalidArgumentsAreRefused(arguments: [String], message: String) throws {
        let answer = try #require(ParsedAnswer(arguments))
        #expect(answer.status == UsageTests.isUsageError)
        #expect(answer.text.hasPrefix("prefetch: ") && answer.text.contains(message))
        // The command that the help is about.
        let name = Prefetch.subcommands.contains(arguments[0]) ? arguments[0] : "run"
        #expect(answer.lines.last?.hasPrefix("hint: `prefetch \(name) ") == true)
        #expect(answer.lines.last?.hasSuffix("--help` shows all flags") == true)
    }

    @Test(arguments: [
        (["failed", "ls"], "failed ls: no such command", "did you mean `prefetch failed list`?"),
        (["hosts", "rm"], "hosts rm: no such command", "did you mean `prefetch hosts clear`?"),
        (["attr", "x"], "attr x: no such command", "`prefetch attr --help` lists the commands"),
        (
            ["attr", "unset", "u", "n"], "attr unset: no such command",
            "`prefetch attr --help` lists the commands"
        ),
        (
            ["--cache-dir", "a", "list", "--cache-dir=b"], "--cache-dir is given twice",
            "a command uses one cache"
        ),
        (["help", "runs"], "runs: no such command", "did you mean `prefetch run`?"),
        (
            ["help", "failed", "nonsense"], "nonsense: no such command",
            "`prefetch failed --help` lists the commands"
        ),
    ])
    func unknownCommandsAndTwoCachesAreRefused(
        arguments: [String], message: String, hint: String
    ) throws {
        let answer = try #require(ParsedAnswer(arguments))
        #expect(answer.status == UsageTests.isUsageError)
        #expect(answer.text == "prefetch: \(message)\nhint: \(hint)\n")
    }

    @Test(arguments: [
        ("--until", "25:00", "a time from 00:00 to 23:59"),
        ("--host-rate", "2/x", "a rate like 2/s, 30/m or 100/h"),
        ("--accept-status", "44", "statuses like 404,500-502 or 4xx, or none"),
        ("--blacklist-status", "x", "statuses like 404,500-502 or 4xx, or none"),
        ("--accept-type", "image", "types like image/png or image/*"),
        ("--ttl", "5x", "a duration like 500ms, 90s, 5m, 12h or 30d"),
    ])
    func wrongValuesAreRefusedWithTheirForm(flag: String, value: String, form: String) throws {
        let answer = try #require(ParsedAnswer(["list.txt", flag, value]))
        #expect(answer.status == UsageTests.isUsageError)
        #expect(answer.lines.first?.hasSuffix(": it takes \(form)") == true)
    }

    /// Every flag that takes one of several words suggests the one that was meant.
    @Test func misspelledWordsAreGuessed() throws {
        let rows = RunFlags.all.filter { !$0.choices.isEmpty }
        #expect(rows.count > 15)
        for row in rows {
            for choice in row.choices where choice.count > 2 && choice.allSatisfy(\.isLetter) {
                for word in [String(choice.dropLast()) + "~", choice.uppercased()] {
                    guard !row.choices.contains(word) else { continue }
                    let answer = try #require(ParsedAnswer(["list.txt", "--\(row.name)", word]))
                    #expect(answer.text.contains("did you mean \(choice)?"), "\(answer)")
                    #expect(answer.text.contains("\(row.choices.last ?? "")"), "\(answer)")
                }
            }
        }
        for (arguments, choice) in [
            (["list.txt", "--encode", "jpg"], "jpeg"),
            (["list.txt", "--allow-formats", "webp,jpg"], "jpeg"),
            (["list.txt", "--lock", "wiat"], "wait"),
            (["list.txt", "--format", "site"], "sitemap"),
            (["export", "e", "--layout", "imagefoldr"], "imagefolder"),
            (["failed", "list", "--reason", "http"], "http-status"),
            (["list", "--sort", "byte"], "bytes"), (["list", "--format", "jepg"], "jpeg"),
        ] {
            let answer = try #require(ParsedAnswer(arguments))
            #expect(answer.lines[0].contains("did you mean \(choice)?"), "\(answer)")
        }
        let rule = try #require(ParsedAnswer(["list.txt", "--prune", "unused-fro=3d"]))
        #expect(rule.text.contains("(did you mean 'unused-for'?)"), "\(rule)")
        let other = try #require(ParsedAnswer(["list.txt", "--encode", "bitmap"]))
        #expect(!other.text.contains("did you mean"), "\(other)")
    }

    /// A number without a unit means seconds or bytes elsewhere, and here would remove everything.
    @Test(arguments: [
        ["prune", "--unlisted-for", "30"], ["prune", "--history", "90"],
        ["prune", "--max-size", "20"], ["run", "-", "--max-size", "20"],
    ])
    func smallNumbersNeedAUnit(arguments: [String]) throws {
        let answer = try #require(ParsedAnswer(arguments))
        #expect(answer.status == UsageTests.isUsageError)
        let first = try #require(answer.lines.first)
        // The refused value is not suggested.
        #expect(first.contains(" unit") && !first.contains("500000"))
        // A large number of bytes is probably computed by a script.
        #expect(ParsedAnswer(["prune", "--max-size", "1048576"]) == nil)
    }

    private static let listHint = """
        name a list of URLs: a file, - for standard input, @NAME for one of a configuration file, \
        or --list URL
        """

    @Test(arguments: [
        ("urls.txt", listHint), ("lists/urls.txt", listHint), ("./lists/urls.txt", listHint),
        ("../urls.txt", listHint), (".d/a.b", listHint),
        ("example.com/a.jpg", "did you mean https://example.com/a.jpg?"),
        ("statz", "did you mean `prefetch stats`?"), ("stat", "did you mean `prefetch stats`?"),
        ("lsit", "did you mean `prefetch list`?"), ("gett", "did you mean `prefetch get`?"),
        ("stast", "did you mean `prefetch stats`?"),
        ("fialed", "did you mean `prefetch failed`?"),
    ])
    func missingListsHaveAHint(path: String, hint: String) {
        let error = ManifestError(
            path: path, operation: .open, code: ENOENT, message: "No such file or directory")
        #expect(ManifestSequence.hint(for: error) == hint)
    }

    @Test func numbersMayBeAttachedToShortFlags() {
        #expect(ParsedAnswer(["images.txt", "-j1"]) == nil)
        #expect(ParsedAnswer(["history", "-n1"]) == nil)
    }

    @Test(arguments: [
        ("1h", "2026-03-01T11:00:00Z"), ("0s", "2026-03-01T12:00:00Z"),
        ("2000-01-01", "2000-01-01T00:00:00Z"),
        ("2000-02-29T00:00:00Z", "2000-02-29T00:00:00Z"),
        ("2099-12-31", "2099-12-31T00:00:00Z"),
    ])
    func timesAreAgesOrDates(text: String, expected: String) throws {
        let now = Timestamp(seconds: 1_772_366_400)
        let since = try #require(SinceArgument(argument: text))
        #expect("\(since.moment(at: now))" == expected)
    }
}
