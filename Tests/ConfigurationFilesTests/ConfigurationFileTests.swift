import Testing

@testable import ConfigurationFiles

extension ConfigurationKeys {
    /// A small table of flags.
    static let sample = ConfigurationKeys(
        flags: [
            Key("jobs", .text), Key("host-concurrency", .text),
            Key("deny-private", .isOn, .refused),
            Key("header", .texts, .refusedWithSecrets), Key("proxy", .text, .refused),
            Key("cache-dir", .text, .refused), Key("variant", .texts),
            Key("prune", .text, .refused),
            Key("max-aspect", .text), Key("linear", .isOn),
        ],
        commandLineFlags: ["offline", "verbose"],
        variant: [Key("spec", .text), Key("resize", .text), Key("linear", .isOn)],
        prune: [Key("unlisted-for", .text, .refused), Key("gone", .isOn, .refused)],
        list: [Key("file", .texts), Key("format", .text), Key("base-url", .text)],
        host: [Key("header", .texts, .refusedWithSecrets), Key("ttl", .text)])
}

extension ConfigurationFile {
    init(_ text: String, path: String = "c.toml", isForeign: Bool = false) {
        self.init(Array(text.utf8), path: path, keys: .sample, isForeign: isForeign)
    }
}

@Suite(.timeLimit(.minutes(15)))
struct ConfigurationFileTests {
    @Test func readsEveryTableWithLines() {
        let file = ConfigurationFile(
            """
            jobs = 1_000
            max-aspect = 2.50
            deny-private = true
            header = ["A: b", "C: d"]

            [profile.nightly]
            jobs = "auto"
            [profile.empty]
            [variant.small]
            resize = "64x64"
            [prune]
            unlisted-for = "30d"
            gone = true
            [list.shop]
            file = "shop.csv"
            """)
        #expect(file.problems == [])
        #expect(file.profiles == ["nightly": 6, "empty": 8])
        let found = file.settings.map { "\($0.origin.line) \($0.table) \($0.key) \($0.value)" }
        #expect(
            found == [
                #"1 root jobs text("1000")"#, #"2 root max-aspect text("2.5")"#,
                "3 root deny-private isOn(true)", #"4 root header texts(["A: b", "C: d"])"#,
                #"7 profile("nightly") jobs text("auto")"#,
                #"10 variant("small") resize text("64x64")"#,
                #"12 prune unlisted-for text("30d")"#, "13 prune gone isOn(true)",
                #"15 list("shop") file texts(["shop.csv"])"#,
            ])
    }

    @Test(
        arguments: [
            ("jbos = 1", "c.toml:1: unknown key 'jbos'", "did you mean 'jobs'?"),
            (
                "\nhost_concurrency = 1", "c.toml:2: unknown key 'host_concurrency'",
                "did you mean 'host-concurrency'?"
            ),
            (
                "nonsense = 1", "c.toml:1: unknown key 'nonsense'",
                "keys are the names of flags, see `prefetch run --help`"
            ),
            (
                "verbose = true", "c.toml:1: 'verbose' belongs to one call, so no file sets it",
                "give --verbose on the command line"
            ),
            ("jobs = true", "c.toml:1: 'jobs' takes a text in quotes or a decimal number", nil),
            ("jobs = 0x10", "c.toml:1: 'jobs' takes a text in quotes or a decimal number", nil),
            ("jobs = [1]", "c.toml:1: 'jobs' takes a text in quotes or a decimal number", nil),
            ("jobs = 06:00:00", "c.toml:1: 'jobs' takes a text in quotes or a decimal number", nil),
            ("linear = 1", "c.toml:1: 'linear' takes true or false", nil),
            (
                "header = [[\"a\"]]",
                "c.toml:1: 'header' takes a text in quotes, or an array of texts", nil
            ),
            (
                "header = [{a = 1}]",
                "c.toml:1: 'header' takes a text in quotes, or an array of texts", nil
            ),
            (
                "header = [true]",
                "c.toml:1: 'header' takes a text in quotes, or an array of texts", nil
            ),
            ("proxy = \"a\\u0000b\"", "c.toml:1: 'proxy' contains a control character", nil),
            ("header = [\"a\", \"b\\n\"]", "c.toml:1: 'header' contains a control character", nil),
            ("[profil.a]", "c.toml:1: unknown table 'profil'", "did you mean 'profile'?"),
            (
                "[hosts.a]", "c.toml:1: unknown table 'hosts'", "did you mean 'host'?"
            ),
            (
                "[profile]\njobs = 1", "c.toml:2: 'jobs' stands directly in [profile]",
                "a table has a name, like [profile.small]"
            ),
            (
                "[[list.shop]]\nfile = 'a'", "c.toml:1: 'shop' stands directly in [list]",
                "a table has a name, like [list.shop]"
            ),
            ("[list.shop]\nformat = 'csv'", "c.toml:1: list 'shop' has no file", nil),
            (
                "[variant.main]\nresize = '1x1'", "c.toml:1: 'main' is no name for a variant",
                "the keys outside of tables make this variant"
            ),
            (
                "[variant.'a=b']\nresize = '1x1'", "c.toml:1: 'a=b' is no name for a variant",
                "a name has letters, digits, '-', '_' and '.'"
            ),
            (
                "[variant.a]\nspec = 'webp'\nresize = '1x1'",
                "c.toml:3: 'spec' and 'resize' cannot be combined", nil
            ),
            (
                "[prune]\nunlisted-fro = '1d'", "c.toml:2: unknown key 'unlisted-fro'",
                "did you mean 'unlisted-for'?"
            ),
            ("[jobs]\na = 1", "c.toml:1: 'jobs' takes a text in quotes or a decimal number", nil),
            (
                "[!]",
                "c.toml:1: column 2: Error while parsing key: expected bare key starting "
                    + "character or string delimiter, saw '!'",
                "TOML writes lock = \"skip\", jobs = 8, header = [\"A: b\", \"C: d\"]"
            ),
        ] as [(String, String, String?)])
    func namesTheLineOfAMistake(text: String, message: String, hint: String?) {
        let file = ConfigurationFile(text)
        #expect(file.problems.map(\.description) == [message])
        #expect(file.problems.first?.hint == hint)
        #expect(file.problems.count == 1)
    }

    @Test func findsAllMistakesFirstLineFirst() {
        let file = ConfigurationFile("z = 1\njobs = true\n[prune]\nx = 1\n[variant.b]\na = 1\n")
        #expect(file.problems.map(\.origin.line) == [1, 2, 4, 6])
    }

    @Test(
        arguments: [
            ("jobs = 1\njobs = 2", 2), ("jobs = ", 1), ("a = \"\u{7}\"", 1), ("[a\n", 1),
            ("\n\nx", 3), (String(repeating: "a.", count: 2_000) + "a = 1", 1),
        ] as [(String, Int)])
    func syntaxErrorsHaveALine(text: String, line: Int) {
        let file = ConfigurationFile(text)
        #expect(file.problems.map(\.origin.line) == [line], "\(file.problems)")
        #expect(file.settings == [])
    }

    @Test func refusesInvalidUTF8AndHugeFiles() {
        for bytes in [
            Array("jobs = \"".utf8) + [0xFF, 0x22],
            Array(repeating: UInt8(0x0A), count: 1 << 20 + 1),
        ] {
            let file = ConfigurationFile(bytes, path: "c.toml", keys: .sample, isForeign: false)
            #expect(file.problems.count == 1)
        }
        #expect(ConfigurationFile("").problems == [])
    }

    /// A file of up to 1 MiB that was made to take long.
    struct Hostile: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let text: String

        init(_ name: String, _ part: String, _ count: Int, before: String = "", after: String = "")
        {
            testDescription = name
            text = before + String(repeating: part, count: count) + after
        }

        init(_ name: String, lines count: Int, _ line: (Int) -> String) {
            testDescription = name
            text = (0..<count).map(line).joined(separator: "\n")
        }
    }

    private static let hostile = [
        Hostile("headers", "[", 1 << 20), Hostile("arrays", "[", 1 << 19, before: "x = "),
        Hostile("dotted keys", "a.", 1 << 19, after: "a = 1"),
        Hostile("inline tables", "{a=", 1 << 18, before: "x = "),
        Hostile("arrays of tables", "[[a]]\n", 170_000),
        Hostile("elements", "'a',", 250_000, before: "header = [", after: "]"),
        Hostile("unknown keys", lines: 60_000) { "k\($0)=\($0)" },
        Hostile("lists", lines: 30_000) { "[list.l\($0)]\nfile='a'" },
        Hostile("variants", lines: 30_000) { "[variant.l\($0)]" },
        Hostile("deep tables", lines: 500) { "[\(String(repeating: "a.", count: 900))k\($0)]" },
    ]

    @Test(arguments: hostile)
    func hostileFilesTakeLittleTime(hostile: Hostile) {
        let start = ContinuousClock.now
        let files = [ConfigurationFile(hostile.text), ConfigurationFile(hostile.text)]
        _ = EffectiveSettings(files: files)
        #expect(files[0].problems.count <= ConfigurationFile.maximumProblems)
        let time = ContinuousClock.now - start
        #expect(time < .seconds(30))
    }
}
