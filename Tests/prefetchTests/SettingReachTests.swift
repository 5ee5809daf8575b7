import ArgumentParser
import ConfigurationFiles
import Foundation
import Manifests
import Pipeline
import PrefetchModel
import Testing

@testable import prefetch

/// Every key of configuration, in every command and layer: it has the effect of the flag, or the
/// command does not have the flag.
@Suite(.timeLimit(.minutes(15)))
struct SettingReachTests {
    /// A command with right arguments, and the words that name it.
    struct Case: CustomTestStringConvertible {
        let words: [String]
        let arguments: [String]
        var testDescription: String { (words + arguments).joined(separator: " ") }
    }

    private static let url = "http://a.example/1"
    private static let lines: [(String, String)] = [
        ("run", "list"), ("plan", "list"), ("status", ""), ("get", url), ("get", "--batch"),
        ("get", url + " --sink s3://b/p"), ("list", ""), ("stats", ""), ("attr get", url + " n"),
        ("attr set", url + " n v"), ("attr list", url), ("attr rm", url + " n"),
        ("failed list", ""), ("failed rm", url), ("failed clear", ""), ("hosts list", ""),
        ("hosts clear", ""), ("history", ""), ("put", url + " file"),
        ("export", "folder list --layout mirror"), ("import", "folder list --layout mirror"),
        ("merge", "a b"), ("pull", "s3://b/p"), ("remove", url), ("remove", "--batch"),
        ("prune", "--unlisted-for 30d"), ("prune", "--unlisted list"), ("verify", ""),
        ("chmod", "0644"), ("doctor", ""), ("placeholders", ""), ("report", "r"),
        ("gallery", "-o /g"),
    ]

    private static let cases: [Case] = lines.map { words, arguments in
        Case(
            words: words.split(separator: " ").map(String.init),
            arguments: arguments.split(separator: " ").map(String.init))
    }

    /// Flags of other commands that only have the name of one of `run`.
    private static let namesakes: [String: Set<String>] = [
        "get": ["variant", "sink"], "list": ["format", "variant", "min-bytes", "limit"],
        "history": ["limit"], "export": ["variant", "allow-empty", "mode"],
        "merge": ["check"], "remove": ["variant"], "prune": ["variant", "max-size"],
    ]

    /// Right values that are not the defaults; a switch has none.
    private static let values: [String: String] = [
        "format": "csv", "url-column": "u", "column": "key=id", "base-url": "http://b.example/",
        "key-ignore-query": "token", "files-below": "/f", "order": "lifo", "queue-capacity": "9",
        "jobs": "3",
        "host-concurrency": "3", "host-interval": "7s", "host-rate": "100/s", "pacing": "fixed",
        "retry": "4", "retry-delay": "2s", "max-retry-after": "1m", "host-timeout": "9s",
        "connect-timeout": "3s", "stall-timeout": "4s", "timeout": "6s", "limit-rate": "2MiB",
        "max-filesize": "1MiB", "max-row-size": "1MiB", "max-pixels": "1000",
        "max-decode-time": "3s", "memory": "64MiB", "sandbox": "require",
        "max-redirects": "3", "limit": "5", "deadline": "1h", "until": "06:00", "jitter": "1s",
        "include": "*.a", "exclude": "*.b", "robots-directives": "noai", "min-size": "3x3",
        "max-aspect": "2", "min-bytes": "10", "header": "X-A: b", "user-agent": "a",
        "accept-formats": "png", "user": "a:b", "netrc-file": "/n", "cookie-jar": "/j",
        "proxy": "http://127.0.0.1:9", "noproxy": "a", "cacert": "/c", "cert": "/c", "key": "/k",
        "resolve": "a:80:127.0.0.1", "accept-status": "404", "accept-type": "image/png",
        "blacklist-status": "410", "method": "head", "body-filter": "base64", "refresh": "all",
        "ahead": "1h", "ttl": "9d", "min-ttl": "1h", "max-ttl": "3d", "default-ttl": "2d",
        "check-files": "never", "encode": "webp", "allow-formats": "png", "quality": "50",
        "effort": "fast", "max-stored-bytes": "20KiB", "strip": "all", "background": "#ff0000",
        "animated": "first", "resize": "9x9", "transform": "grey", "scale-down-pixels": "5000",
        "variant": "a=png", "check": "structure", "other-formats": "fail", "cache-dir": "/c",
        "seed-cache": "/s", "sync": "full", "max-size": "1GiB", "prune": "gone",
        "snapshot": "off", "mode": "0644", "sink": "s3://b/p", "sink-credentials": "none",
        "sink-addressing": "host", "sink-encryption": "AES256", "sink-storage-class": "IA",
        "report": "/r", "prometheus": "/p.prom", "junit": "/j.xml", "html": "/h.html",
        "ci": "none", "on-change": "id", "summary": "json", "progress": "never",
        "color": "never", "fail-on": "new", "max-failures": "3", "lock": "wait",
    ]

    private static let rows = RunFlags.all.filter(\.isConfigurable)

    /// The keys, in parts without settings that exclude one another.
    private static let parts: [[FlagRow]] = {
        let sets = RunFlags.spellings + RunFlags.conflicts
        var parts: [[FlagRow]] = []
        for row in rows {
            let index = parts.firstIndex { part in
                !part.contains { other in
                    sets.contains { $0.isSuperset(of: [row.name, other.name]) }
                }
            }
            if let index { parts[index].append(row) } else { parts.append([row]) }
        }
        return parts
    }()

    enum Layer: CaseIterable {
        case file, profile, variables, commandLine
    }

    // MARK: The tables

    @Test func theTablesHaveEveryCommandAndKey() throws {
        func leaves(_ type: any ParsableCommand.Type, _ words: [String]) -> [[String]] {
            let all = type.configuration.subcommands
            return all.isEmpty
                ? [words] : all.flatMap { leaves($0, words + [$0._commandName]) }
        }
        let commands = leaves(Prefetch.self, []).filter { $0[0] != "config" }
        #expect(Set(Self.cases.map(\.words)) == Set(commands))
        for row in Self.rows {
            #expect((Self.values[row.name] == nil) == (row.value == nil), "\(row.name)")
            #expect(row.defaultText != Self.values[row.name] ?? "-", "\(row.name)")
        }
    }

    /// The long names of a command's flags, by the parser's own description.
    private static func names(of words: [String]) throws -> Set<String> {
        let dump = try JSONSerialization.jsonObject(with: Data(Prefetch._dumpHelp().utf8))
        var command = try #require((dump as? [String: Any])?["command"] as? [String: Any])
        for word in words {
            let all = command["subcommands"] as? [[String: Any]] ?? []
            command = try #require(all.first { $0["commandName"] as? String == word })
        }
        let arguments = command["arguments"] as? [[String: Any]] ?? []
        return Set(
            arguments.flatMap { $0["names"] as? [[String: Any]] ?? [] }
                .filter { $0["kind"] as? String == "long" }.compactMap { $0["name"] as? String })
    }

    private static let namesByCommand: [[String]: Set<String>] = {
        var names: [[String]: Set<String>] = [:]
        for words in Set(cases.map(\.words)) { names[words] = try? Self.names(of: words) }
        return names
    }()

    /// The keys with an effect on a command: its flags, without namesakes and the flags that need
    /// another one.
    private static func reach(_ command: Case) -> Set<String> {
        let first = command.words[0]
        var names = namesByCommand[command.words] ?? []
        if !["run", "plan"].contains(first) { names.subtract(namesakes[first] ?? []) }
        names.formIntersection(rows.map(\.name))
        let manifests = Set(InputFlags.flags.all.map(\.row.name))
        let others =
            ["get", "remove"].contains(first)
            ? manifests.subtracting(["key-ignore-query"]) : manifests
        if !command.arguments.contains(where: ["--batch", "--unlisted"].contains),
            ["get", "remove", "prune"].contains(first)
        {
            names.subtract(others)
        }
        if first == "get", !command.arguments.contains("--sink") {
            names.subtract(BucketFlags.flags.all.map(\.row.name))
        }
        return names
    }

    // MARK: Effects

    private static func line(_ row: FlagRow) -> String {
        "\(TOMLText.key(row.name)) = "
            + (values[row.name].map { TOMLText.value($0, isNumber: false) } ?? "true")
    }

    /// The command line of a case with settings, as the parser gets it.
    private static func configured(
        _ command: Case, _ rows: [FlagRow], in layer: Layer
    ) throws -> ConfiguredCommand {
        try withFolder { folder in
            let path = folder + "/c.toml"
            var lines: [String] = []
            var variables: [String: String] = [:]
            var arguments = command.arguments
            switch layer {
            case .file: lines = rows.map(line)
            case .profile: lines = ["[profile.p]"] + rows.map(line)
            case .variables:
                for row in rows {
                    variables[EnvironmentSettings.variable(of: row)] = values[row.name] ?? "1"
                }
            case .commandLine:
                arguments += rows.map { row in
                    values[row.name].map { "--\(row.name)=\($0)" } ?? "--\(row.name)"
                }
            }
            if layer == .profile { arguments += ["--profile", "p"] }
            try lines.joined(separator: "\n").write(
                toFile: path, atomically: true, encoding: .utf8)
            var configured = ConfiguredCommand(
                command.words + arguments + ["--config", path], variables: variables)
            try configured.configure()
            return configured
        }
    }

    private static func parse(_ command: ConfiguredCommand, _ words: [String]) throws -> Any {
        var type: any ParsableCommand.Type = Prefetch.self
        for word in words {
            type = try #require(type.configuration.subcommands.first { $0._commandName == word })
        }
        return try type.parse(Array(command.arguments.dropFirst(words.count)))
    }

    /// The values of the flags that a parsed command has, by name, without those that choose the
    /// layer.
    private static func values(of command: ConfiguredCommand, _ words: [String]) throws
        -> [String: String]
    {
        try values(in: parse(command, words)).filter { !["config", "profile"].contains($0.key) }
    }

    private static func values(in parsed: Any) throws -> [String: String] {
        var found: [String: String] = [:]
        for child in Mirror(reflecting: parsed).children {
            if let group = (child.value as? any OptionGroupValue)?.anyValue {
                if let flags = group as? any FlagValues {
                    found.merge(try flags.texts()) { $1 }
                } else {
                    found.merge(try values(in: group)) { $1 }
                }
            } else if let row = child.label.flatMap({ SharedFlags.single[$0] }) {
                found[row.name] = "\(child.value)"
            }
        }
        return found
    }

    @Test(arguments: cases)
    func aSettingReachesEveryCommandWithTheFlag(command: Case) throws {
        func values(_ rows: [FlagRow], in layer: Layer) throws -> [String: String] {
            try Self.values(of: Self.configured(command, rows, in: layer), command.words)
        }
        let usual = try values([], in: .file)
        let reach = Self.reach(command)
        for part in Self.parts {
            let own = part.filter { reach.contains($0.name) }
            let given = try values(own, in: .commandLine)
            for row in part {
                let isChanged = given[row.name] != usual[row.name]
                #expect(isChanged == reach.contains(row.name), "\(row.name): \(given)")
            }
            for layer in Layer.allCases where layer != .commandLine {
                #expect(try values(part, in: layer) == given, "\(layer)")
            }
        }
    }

    /// Flags without an effect on a run's configuration: they change the command itself.
    private static let withoutEffect: Set<String> = [
        "format", "url-column", "each", "max-row-size", "column", "no-header", "sitemap-pages",
        "base-url", "deadline",
        "limit", "until", "fail-fast", "jitter", "include", "exclude", "cache-dir", "seed-cache",
        "noproxy", "netrc", "netrc-file", "check-files", "mode", "sink", "sink-credentials",
        "sink-addressing", "sink-encryption", "sink-storage-class", "sink-requester-pays",
        "report", "prometheus", "junit", "html", "ci", "on-change", "summary", "progress",
        "color", "quiet", "lock",
    ]

    @Test func everyOtherFlagChangesTheConfiguration() throws {
        let usual = Self.text(RunSettings(RunFlags.defaults))
        for flag in RunFlags.sections.flatMap({ $0.groups.flatMap { $0.allFlags } })
        where flag.row.isConfigurable && flag.row.path != .whole {
            var settings = RunSettings(RunFlags.defaults)
            var fields = HostFields()
            let value: ConfigurationSetting.Value =
                Self.values[flag.row.name].map { flag.row.isRepeatable ? .texts([$0]) : .text($0) }
                ?? .isOn(true)
            let effect = try flag.apply(value, to: &fields)
            try effect?(&settings)
            let isChanged = Self.text(settings) != usual || !fields.defaults.isEmpty
            #expect(isChanged != Self.withoutEffect.contains(flag.row.name), "\(flag.row.name)")
        }
    }

    private static func text(_ settings: RunSettings) -> String {
        var text = ""
        dump(settings, to: &text)
        return text
    }

    /// On the command line, a flag without effect is refused by name: each one that the parser
    /// knows, and one that it does not know.
    @Test(arguments: cases)
    func otherFlagsAreRefused(command: Case) throws {
        let others = Self.reach(command).union(Self.namesakes[command.words[0]] ?? [])
        let refused = Self.rows.filter { !others.contains($0.name) }
        let names = Self.namesByCommand[command.words] ?? []
        let known = refused.filter { names.contains($0.name) }
        for row in known + refused.filter({ !names.contains($0.name) }).prefix(1) {
            do {
                let configured = try Self.configured(command, [row], in: .commandLine)
                try UsageAdvice.check(configured.given)
                _ = try Self.parse(configured, command.words)
                Issue.record("\(row.name) is accepted")
            } catch {
                let text = "\(error)\(Prefetch.message(for: error))"
                #expect(text.contains("--\(row.name)"), "\(row.name): \(text)")
            }
        }
    }

    // MARK: Project, hosts and lists

    /// A key that a stranger's file may not set is refused with its name and the next step.
    @Test(arguments: rows.map(\.name))
    func aProjectsFileMaySetAKeyOrIsRefused(name: String) throws {
        let row = try #require(Self.rows.first { $0.name == name })
        let file = ConfigurationFile(
            Array(Self.line(row).utf8), path: "prefetch.toml", isForeign: true)
        guard row.projectRule == .refused else {
            #expect(file.problems.isEmpty)
            return #expect(file.settings.map(\.key) == [name])
        }
        #expect(file.problems.map(\.message) == ["a project's file may not set '\(name)'"])
        #expect(file.problems.map(\.hint) == ["--trust-project-config allows it"])
        let trusted = ConfigurationFile(Array(Self.line(row).utf8), path: "prefetch.toml")
        #expect(trusted.settings.map(\.key) == [name])
    }

    @Test(arguments: rows.map(\.name))
    func tablesOfHostsAndListsTakeAKeyOrNameIt(name: String) throws {
        let row = try #require(Self.rows.first { $0.name == name })
        let lists = Set(NamedListFlags.flags.all.map(\.row.name)).subtracting([
            "files-below", "key-ignore-query",
        ])
        for (table, isTaken) in [
            ("[host.\"a.example:8080\"]", row.isPerHost),
            ("[list.l]\nfile = \"l\"", lists.contains(name)),
        ] {
            let file = ConfigurationFile(Array("\(table)\n\(Self.line(row))".utf8), path: "c")
            #expect(file.problems.isEmpty == isTaken, "\(table)")
            if !isTaken { #expect(file.problems.contains { $0.message.contains("'\(name)'") }) }
        }
    }

    /// The keys of a list reach its entries in every command that reads lists.
    @Test(arguments: ["run", "plan", "export", "import", "prune"])
    func aListHasItsKeysInEveryCommand(name: String) throws {
        let command = try #require(
            Self.cases.first { $0.words == [name] && $0.arguments.contains("list") })
        let arguments = command.arguments.map { $0 == "list" ? "@l" : $0 }
        func files(_ keys: String, _ given: String...) throws -> ManifestOptions {
            try withFolder { folder in
                let path = folder + "/c.toml"
                try "\(keys)\n[list.l]\nfile = \"l\"\nurl-column = \"own\"\n".write(
                    toFile: path, atomically: true, encoding: .utf8)
                var configured = ConfiguredCommand(
                    command.words + arguments + given + ["--config", path],
                    variables: ["PREFETCH_BASE_URL": "http://b.example/"])
                try configured.configure()
                let files = try configured.invocation.lists.files(
                    of: "@l", options: ManifestOptions())
                return try #require(files.first?.options)
            }
        }
        let options = try files("format = \"csv\"\nurl-column = \"common\"")
        #expect(options.format == .csv)
        #expect(options.columns.urlColumns == ["own"])
        #expect(options.baseURL == "http://b.example/")
        let given = try files("", "--url-column=given", "--format=tsv")
        #expect(given.columns.urlColumns == ["given"])
        #expect(given.format == .tsv)
    }

    /// Tables of hosts reach the commands that have flags of them.
    @Test func aTableOfAHostReachesEveryCommandWithTheFlag() throws {
        let table = "[host.\"a.example:8080\"]\nttl = \"9d\"\nuser-agent = \"own\"\nretry = 9\n"
        for (name, ttl, agent, retry) in [
            ("run", true, true, true), ("plan", true, true, true), ("put", true, false, false),
            ("import", true, false, false), ("doctor", false, true, false),
            ("export", false, false, false), ("pull", false, false, false),
        ] {
            let command = try #require(Self.cases.first { $0.words == [name] })
            let hosts = try withFolder { folder in
                let path = folder + "/c.toml"
                try table.write(toFile: path, atomically: true, encoding: .utf8)
                var configured = ConfiguredCommand(
                    command.words + command.arguments + ["--config", path], variables: [:])
                try configured.configure()
                return configured.invocation.hosts
            }
            var run = RunFlags.defaults
            try hosts.apply(to: &run)
            for url in ["http://a.example:8080/1", "http://a.example/1"] {
                let isHost = url.contains(":8080")
                let own = run.hosts.configurations[hostIn: url] ?? run
                #expect(
                    (hosts.defaults[hostIn: url]?.timeToLive != nil) == (ttl && isHost), "\(name)")
                #expect((own.userAgent == "own") == (agent && isHost), "\(name)")
                #expect((own.hosts.maximumRetries == 9) == (retry && isHost), "\(name)")
            }
        }
    }
}

/// The value of an option group of any type.
private protocol OptionGroupValue {
    var anyValue: Any { get }
}

extension OptionGroup: OptionGroupValue {
    fileprivate var anyValue: Any { wrappedValue }
}

private protocol FlagValues {
    func texts() throws -> [String: String]
}

extension Flags: FlagValues {
    fileprivate func texts() throws -> [String: String] {
        Dictionary(
            uniqueKeysWithValues: Rows.flags.all.map {
                ($0.row.name, "\(values[$0.row.name] ?? "")")
            })
    }
}
