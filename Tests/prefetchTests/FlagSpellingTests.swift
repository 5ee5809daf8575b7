import ArgumentParser
import ConfigurationFiles
import Foundation
import Pipeline
import PrefetchModel
import Testing

@testable import prefetch

/// Flags that set the same in several ways, and flags of several places.
@Suite(.timeLimit(.minutes(15)))
struct FlagSpellingTests {
    /// The sets of flags that replace one another across layers.
    private static let sets = RunFlags.spellings + RunFlags.conflicts

    /// Each flag with another one of its set.
    private static let pairs = sets.flatMap { names in
        names.sorted().flatMap { name in names.subtracting([name]).sorted().map { (name, $0) } }
    }

    /// Right values of flags; those without a value are switches.
    private static let values = [
        "host-concurrency": "3", "host-interval": "7s", "host-rate": "100/s", "retry": "4",
        "connect-timeout": "3s", "stall-timeout": "4s", "timeout": "5s", "header": "X-A: b",
        "user-agent": "a", "user": "a:b", "proxy": "http://127.0.0.1:9", "accept-status": "404",
        "accept-type": "image/png", "blacklist-status": "410", "body-filter": "base64",
        "ttl": "9d", "deadline": "1h", "until": "06:00", "netrc-file": "/n", "cacert": "/c",
        "cert": "/a", "key": "/k", "accept-formats": "png", "min-ttl": "1h", "max-ttl": "2h",
        "refresh": "all", "method": "head", "sink": "s3://b/p",
    ]

    private static func argument(_ name: String) -> String {
        values[name].map { "--\(name)=\($0)" } ?? "--\(name)"
    }

    private static func line(_ name: String) -> String {
        "\(name) = \(values[name].map { "\"\($0)\"" } ?? "true")\n"
    }

    private static func file(_ text: String) -> ConfigurationFile {
        ConfigurationFile(Array(text.utf8), path: "c", keys: .ofRun, isForeign: false)
    }

    @Test func theSpellings() {
        #expect(
            Set(RunFlags.spellings) == [
                ["host-interval", "host-rate"], ["deadline", "until"], ["ipv4", "ipv6"],
                ["netrc", "netrc-file"],
            ])
    }

    @Test(arguments: pairs)
    func theCommandLineReplacesAnotherSpelling(given: String, configured: String) throws {
        let row = try #require(RunFlags.all.first { $0.name == configured })
        guard row.isConfigurable else { return }
        let command = try ParsedRun.command(
            [Self.argument(given)], file: Self.line(configured))
        #expect(command.added.map(\.row.name) == [])
    }

    @Test(arguments: pairs)
    func aHigherLayerReplacesAnotherSpelling(higher: String, lower: String) {
        let files = [higher, lower].map { Self.file(Self.line($0)) }
        let settings = EffectiveSettings(files: files, spellings: Self.sets)
        let known = RunFlags.all.filter(\.isConfigurable).map(\.name)
        guard known.contains(higher) else { return }
        #expect(settings.flags.keys.sorted() == [higher])
    }

    /// `false` takes back only a switch itself.
    @Test func aSwitchThatIsOffReplacesNothing() {
        let files = ["ipv6 = false\n", "ipv4 = true\n"].map(Self.file)
        let settings = EffectiveSettings(files: files, spellings: RunFlags.spellings)
        #expect(settings.flags["ipv4"]?.value == .isOn(true))
    }

    /// `--no-deadline` takes a file's deadline back.
    @Test func aDeadlineOfAFileMayBeReplaced() throws {
        func limits(_ arguments: String...) throws -> Flags<RunLimitFlags> {
            let command = try ParsedRun.command(arguments, file: "deadline = \"1ms\"\n")
            return try RunCommand.parse(Array(command.arguments.dropFirst())).runLimits
        }
        #expect(try limits().deadline == .milliseconds(1))
        let until = try limits("--until", "06:00")
        #expect(until.deadline == nil && until.until != nil)
        #expect(try limits("--no-deadline").limits().deadline == nil)
        #expect(try limits("--deadline", "1h").deadline == .seconds(3600))
    }

    /// All values of a repeatable flag.
    @Test func aFlagReplacesItsSettings() throws {
        let file = "variant = [\"a=png\", \"b=webp\"]\nquiet = true\n"
        let run = try ParsedRun.configuration(["--variant", "c=jpeg"], file: file)
        #expect(run.images.variants.map { "\($0.name)" } == ["main", "c"])
        // -q from the file and -v from the command line.
        let command = try ParsedRun.command(["-v"], file: file)
        #expect(command.added.map(\.row.name) == ["variant", "variant"])
    }

    @Test func anOrderMayHaveASeed() throws {
        let run = try ParsedRun.configuration(["--order", "random=7"], file: "")
        #expect(run.queue.order == .random(seed: 7))
    }

    @Test(arguments: [
        ([], "", Duration.zero), ([], "host-interval = \"7s\"\n", .seconds(7)),
        (["--host-rate", "100/s"], "host-interval = \"7s\"\n", .milliseconds(10)),
        (["--host-interval", "1s"], "host-rate = \"100/s\"\n", .seconds(1)),
        (["--host-rate", "100/s"], "[host.\"*\"]\nhost-interval = \"7s\"\n", .milliseconds(10)),
        ([], "host-interval = \"7s\"\n[host.\"*\"]\nhost-rate = \"100/s\"\n", .milliseconds(10)),
        ([], "[host.\"*\"]\nhost-rate = \"100/s\"\nhost-interval = \"7s\"\n", .milliseconds(10)),
        (["--host-rate", "100/s", "--host-interval", "7s"], "", .milliseconds(10)),
        (["--host-rate", "600/m"], "", .milliseconds(100)),
        (["--host-rate", "36000/h"], "", .milliseconds(100)),
        (["--host-rate", "10"], "", .milliseconds(100)),
        (["--host-rate", "10/s"], "", .milliseconds(100)),
    ])
    func theDistanceOfRequests(
        arguments: [String], lines: String, expected: Duration
    ) throws {
        let run = try ParsedRun.configuration(arguments, file: lines)
        let host = run.hosts.configurations[hostIn: "https://example.com/a"] ?? run
        #expect(host.hosts.interval == expected)
    }

    private static let insecure = ["1": true, "0": false].map { name, isOn in
        ConfigurationSetting(
            key: "insecure", value: .isOn(isOn), origin: .variable("PREFETCH_INSECURE=\(name)"))
    }

    /// `insecure` for all hosts leaves the authorities of a table: they verify its host.
    @Test(arguments: insecure)
    func aVariableLeavesTheAuthoritiesOfATable(variable: ConfigurationSetting) {
        let settings = EffectiveSettings(
            files: [Self.file("[host.\"*\"]\ncacert = \"/c\"\n")], variables: [variable],
            spellings: RunFlags.spellings)
        #expect(!settings.isSetByVariable("cacert"))
        #expect(settings.isSetByVariable("insecure"))
    }

    @Test(arguments: [["--insecure"], ["--no-insecure"], []])
    func theCommandLineLeavesTheAuthoritiesOfATable(arguments: [String]) throws {
        let authority = NSTemporaryDirectory() + "prefetch-authority-\(UUID()).pem"
        try "-----BEGIN CERTIFICATE-----\n".write(
            toFile: authority, atomically: true, encoding: .utf8)
        defer { try? FileManager.default.removeItem(atPath: authority) }
        let run = try ParsedRun.configuration(
            arguments, file: "[host.\"*\"]\ncacert = \"\(authority)\"\n")
        let host = run.hosts.configurations[hostIn: "https://example.com/a"]
        #expect(host?.requests.authorityFile == authority)
        #expect(host?.requests.verifiesOrigins == true)
        #expect(run.requests.verifiesOrigins == (arguments != ["--insecure"]))
    }

    /// The key would belong to another certificate.
    @Test func aCertificateReplacesThatOfATableWithItsKey() throws {
        let command = try ParsedRun.command(
            ["--cert", "/a"], file: "[host.\"*\"]\ncert = \"/c\"\nkey = \"/k\"\n")
        var run = RunFlags.defaults
        try command.invocation.hosts.apply(to: &run)
        #expect(run.hosts.configurations[hostIn: "https://example.com/a"] == nil)
    }

    /// A flag has the same effect on the command line, in a file and in the table of a host.
    @Test(arguments: RunFlags.perHost.map(\.row.name))
    func aFlagHasOneEffect(name: String) throws {
        // Their files are read, and tests of requests have them.
        guard !["cacert", "cert", "key"].contains(name) else { return }
        func text(_ run: RunConfiguration) -> [String] {
            var common = run
            common.hosts.configurations = HostTable()
            return [
                "\(common.hosts)", "\(common.limits)", "\(common.bodies.responses)",
                "\(common.requests)", "\(common.lifetimes)", common.userAgent,
            ]
        }
        let given = try ParsedRun.configuration([Self.argument(name)], file: "")
        let configured = try ParsedRun.configuration([], file: Self.line(name))
        #expect(text(given) == text(configured))
        let tables = try ParsedRun.configuration([], file: "[host.\"*\"]\n" + Self.line(name))
        guard let host = tables.hosts.configurations[hostIn: "https://example.com/a"] else {
            // It changes the fields of entries.
            let command = try ParsedRun.command([], file: "[host.\"*\"]\n" + Self.line(name))
            #expect(!command.invocation.hosts.defaults.isEmpty)
            return
        }
        #expect(text(host) == text(given))
        #expect(text(given) != text(try ParsedRun.configuration([], file: "")))
    }
}
