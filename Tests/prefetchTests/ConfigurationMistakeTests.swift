import ConfigurationFiles
import PrefetchModel
import Testing

@testable import prefetch

/// Mistakes in configuration files, as `run` finds them, and files of strangers.
@Suite(.timeLimit(.minutes(15)))
struct ConfigurationMistakeTests {
    @Test(
        arguments: [
            ("jbos = 1", "c.toml:1: unknown key 'jbos'\nhint: did you mean 'jobs'?\n"),
            ("\njobs = \"x\"", "c.toml:2: The value 'x' is invalid for '--jobs <n>'\n"),
            ("jobs = 0", "c.toml:1: --jobs must be between 1 and 10000\n"),
            (
                "ttl = \"1d\"\nmin-ttl = \"1h\"",
                "c.toml:1: --ttl cannot be combined with --min-ttl"
            ),
            ("header = \"a\"", "c.toml:1: --header: a header is written 'Name: value'\n"),
            (
                "[variant.a]\nresize = \"1x1\"\nquality = 0",
                "c.toml:3: 'quality' takes 1 to 100\n"
            ),
            (
                "[variant.a]\nencode = \"jpge\"",
                "c.toml:2: 'encode' takes same, jpeg, png, webp, avif, auto or original\n"
            ),
            (
                "[variant.a]\nquality = 5\nencode = \"png\"",
                "c.toml:2: --variant a: 'q=' has no effect on png"
            ),
            ("header = [[\"A: b\"]]", "c.toml:1: 'header' takes a text in quotes, or an "),
            ("jobs = 1\njobs = 2", "c.toml:2: column "),
            ("[host.\"*\"]\njobs = 1", "c.toml:2: unknown key 'jobs'\n"),
            ("[host.\"*\"]\nttl = \"x\"", "c.toml:2: The value 'x' is invalid for '--ttl"),
            (
                "encode = \"jpge\"",
                "c.toml:1: The value 'jpge' is invalid for '--encode <format>': did you mean jpeg? "
                    + "it takes same, jpeg, png, webp, avif, auto or original\n"
            ),
            ("[list.a]\nfile = []", "c.toml:1: list 'a' has no file\n"),
            ("[host.\"a/b\"]\nttl = \"1d\"", "c.toml:2: 'a/b' is no pattern of a host\n"),
            ("user = \"a:b\"\n[host.\"*\"]\nuser = \"c\"\n", "c.toml:3: "),
            ("[host.\"*\"]\nproxy = \"ftp://x\"\n", "c.toml:2: "),
            ("[host.\"*\"]\nkey = \"/x\"\n", "c.toml:2: "),
        ] as [(String, String)])
    func theMessageNamesLineAndKey(text: String, message: String) throws {
        let refusal = try #require(try ParsedRun.refusal([], file: text))
        #expect(refusal.status == 64)
        let shown = refusal.text + "\n" + (refusal.hint.map { "hint: \($0)\n" } ?? "")
        #expect(shown.hasPrefix(message), "\(shown)")
    }

    /// `config check` names each mistake, and each once, whatever profiles and hints there are.
    @Test(
        arguments: [
            ("min-ttl = \"2h\"\nmax-ttl = \"1h\"\n[profile.p]\nmax-ttl = \"30m\"", [1]),
            ("encode = \"original\"\nresize = \"9x9\"\n[profile.p]\nresize = \"8x8\"", [1]),
            ("jobs = \"x\"\nretry = \"x\"\n[profile.p]\nquiet = true", [1, 2]),
            ("[list.a]\nfile = \"x\"\ncolumn = [\"a\"]\nbase-url = \"z\"", [3, 4]),
            ("[host.\"a:81\"]\nttl = \"x\"\nretry = \"x\"\n[host.\"b:\"]\nttl = \"x\"", [2, 3, 5]),
        ] as [(String, [Int])])
    func eachMistakeIsNamedOnce(text: String, lines: [Int]) {
        let file = ConfigurationFile(Array(text.utf8), path: "c")
        #expect(file.problems.isEmpty)
        let problems = ConfigurationCheck(files: [file], variables: []).problems()
        #expect(problems.map(\.subject).sorted() == lines.map { "c:\($0)" }, "\(problems)")
    }

    /// Also the ones of variables, and of the file's settings that they replace.
    @Test func mistakesInVariablesAreNamed() throws {
        let variables = try EnvironmentSettings.settings(
            RunFlags.all, of: ["PREFETCH_JOBS": "x", "PREFETCH_RETRY": "y", "PREFETCH_TTL": ""])
        let file = ConfigurationFile(Array("retry = \"z\"".utf8), path: "c")
        let problems = ConfigurationCheck(files: [file], variables: variables).problems()
        #expect(problems.map(\.subject).sorted() == ["PREFETCH_JOBS", "PREFETCH_RETRY", "c:1"])
    }

    /// `~` is the home in every value that names files.
    @Test(arguments: ConfigurationKeys.ofRun.flags.filter { $0.path != .none }.map(\.name))
    func aTildeIsTheHome(name: String) throws {
        let row = try #require(RunFlags.all.first { $0.name == name })
        let (before, after) =
            switch row.path {
            case .overlays: (name == "variant" ? "a=overlay=" : "grey,overlay=", "@north")
            case .afterAt: ("@", "")
            case .whole, .none: ("", "")
            }
        func texts(_ path: String, _ home: String?) -> ([String]?, [String]) {
            let line = "\(name) = \"\(before)\(path)\(after)\""
            let file = ConfigurationFile(
                Array(line.utf8), path: "c", keys: .ofRun, isForeign: false, home: home)
            return (file.settings.first?.value.texts, file.problems.map(\.description))
        }
        #expect(texts("~/x", "/home/me").0 == [before + "/home/me/x" + after])
        #expect(texts("~/x", "/").0 == [before + "/x" + after])
        #expect(texts("a~/x", "/h").0 == [before + "a~/x" + after])
        #expect(texts("~you/x", "/h").1 == ["c:1: '\(name)' takes ~/ for your home, and no ~NAME"])
        #expect(texts("~/x", nil).1 == ["c:1: '\(name)' has ~, but HOME is not set"])
        let variable = EnvironmentSettings.variable(of: row)
        let settings = try EnvironmentSettings.settings(
            [row], of: [variable: before + "~/x" + after])
        let home = try #require(HomeDirectory.path)
        let expected = home == "/" ? "/x" : home + "/x"
        #expect(settings.first?.value.texts == [before + expected + after])
        #expect(throws: UserError.self) {
            try EnvironmentSettings.settings([row], of: [variable: before + "~you" + after])
        }
    }

    @Test(
        arguments: [
            ("proxy = \"http://127.0.0.1:9\"", "proxy"), ("insecure = true", "insecure"),
            ("netrc = true", "netrc"), ("netrc-file = \"x\"", "netrc-file"),
            ("user = \"a:b\"", "user"),
            ("user = \"@x\"", "user"), ("cookie-jar = \"x\"", "cookie-jar"),
            ("cacert = \"x\"", "cacert"),
            ("resolve = \"a:80:127.0.0.1\"", "resolve"), ("noproxy = \"*\"", "noproxy"),
            ("allow-link-local = true", "allow-link-local"),
            ("deny-private = false", "deny-private"),
            ("allow-downgrade = true", "allow-downgrade"), ("cache-dir = \"x\"", "cache-dir"),
            ("report = \"x\"", "report"), ("mode = \"0666\"", "mode"),
            ("max-size = \"1MiB\"", "max-size"),
            ("prune = \"unlisted-for=1s\"", "prune"), ("[prune]\ngone = true", "gone"),
            ("base-url = \"http://127.0.0.1:9\"", "base-url"),
            ("[list.a]\nfile = \"../a\"", "file"),
            ("[list.a]\nfile = \"http://127.0.0.1:9/a\"", "file"),
            ("transform = \"overlay=/etc/hostname@south\"", "transform"),
            ("key-ignore-query = \"id\"", "key-ignore-query"),
            ("[variant.t]\nspec = \"overlay=/etc/hostname@south\"", "spec"),
            ("on-change = \"id\"", "on-change"), ("prometheus = \"a.prom\"", "prometheus"),
            ("url-column = \"x\"", "url-column"), ("sync = \"off\"", "sync"),
            ("[profile.p]\nproxy = \"x\"", "proxy"),
        ] as [(String, String)])
    func aProjectMayNotSet(text: String, key: String) throws {
        let file = ConfigurationFile(
            Array(text.utf8), path: "prefetch.toml", keys: .ofRun, isForeign: true)
        let problem = try #require(file.problems.first)
        let line = text.contains("\n") ? 2 : 1
        #expect(file.problems.count == 1)
        #expect(
            problem.description.hasPrefix(
                "prefetch.toml:\(line): a project's file may not set '\(key)'"), "\(problem)")
        let place = " to a URL, or to a file outside of its folder"
        #expect(problem.description.hasSuffix(place) == (key == "file"), "\(problem)")
        #expect(problem.hint == "--trust-project-config allows it")
    }
}
