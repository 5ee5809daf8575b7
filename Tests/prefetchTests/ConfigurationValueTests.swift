import ConfigurationFiles
import Foundation
import Manifests
import Testing

@testable import prefetch

/// No value of a configuration file holds another key.
@Suite(.timeLimit(.minutes(15)))
struct ConfigurationValueTests {
    /// A right value of each key with values that are joined to a larger text.
    private static let values = [
        "encode": "same", "allow-formats": "jpeg,png", "quality": "50", "effort": "fast",
        "max-stored-bytes": "20KiB", "strip": "all", "background": "#fff", "animated": "first",
        "resize": "64x64!", "transform": "grey", "scale-down-pixels": "5000",
        "unlisted-for": "30d", "unused-for": "30d", "expired-for": "30d",
        "variants-unused-for": "30d", "history": "30d", "max-size": "1GiB", "max-files": "9",
        "low-water": "50%",
    ]

    /// All texts that one of these keys could smuggle in.
    private static let smuggled =
        values.flatMap { ["\($0)=\($1)", $1] }
        + [
            "overlay=/etc/hostname@south-east", "overlay=x", "q=5", "max-bytes=1", "linear",
            "keep-larger", "gone", "png", "original", "64x64", "circle", "border=4", "",
        ]

    private static let steps = [
        "grey", "circle", "border=4", "resize=64x64!", "64x64!", "64x64",
        "overlay=/etc/hostname@south-east", "50%", "5000",
    ]

    private static let joined =
        ConfigurationKeys.ofRun.variant.filter { $0.name != "spec" }.map { ("variant.a", $0) }
        + ConfigurationKeys.ofRun.prune.map { ("prune", $0) }

    @Test(arguments: joined.indices)
    func aJoinedValueHoldsNoOtherKey(index: Int) throws {
        let (table, key) = Self.joined[index]
        guard key.form == .text else {
            #expect(!Self.problems(table, key.name, "true").isEmpty, "a switch has no text")
            return
        }
        let value = try #require(Self.values[key.name], "a sample of \(key.name)")
        #expect(Self.problems(table, key.name, value) == [])
        for other in Self.smuggled {
            for text in ["\(value),\(other)", "\(value), \(other)", "\(other),\(value)"] {
                // The whole text is a value of this one flag.
                let isOwn =
                    key.name == "transform" && Self.steps.contains(other)
                    || key.name == "allow-formats" && ["png", "jpeg,png"].contains(other)
                guard !isOwn else { continue }
                #expect(
                    Self.problems(table, key.name, text) == ["c:2: '\(key.name)'"], "\(text)")
            }
        }
    }

    /// Every other value becomes one argument of its own flag, with any content.
    @Test func aValueBecomesOneArgument() {
        let joined = [
            EncodingFlags.flags.variants.row.name, DiskFlags.flags.prune.row.name,
        ]
        let rows = RunFlags.all.filter {
            $0.isConfigurable && $0.value != nil && !joined.contains($0.name)
        }
        // One file with every flag, since making arguments goes through all flags.
        for other in RunFlags.all.map({ "--\($0.name)=1" }) + Self.smuggled {
            for text in [other, "a,\(other)", "a \(other)"] {
                let file = Self.file(
                    rows.map { "\(TOMLText.key($0.name)) = \(TOMLText.value(text))\n" }.joined())
                let added = ConfiguredCommand.added(EffectiveSettings(files: [file]), RunFlags.all)
                #expect(added.map(\.row.name) == rows.map(\.name))
                #expect(
                    added.map(\.arguments)
                        == rows.map { ConfiguredCommand.arguments($0.name, text) }, "\(text)")
            }
        }
    }

    /// No value of a stranger's file names a file of another folder.
    @Test func aProjectReadsNoOverlay() {
        let keys = ConfigurationKeys.ofRun
        for (table, keys) in [("profile.p", keys.flags), ("variant.a", keys.variant)] {
            for key in keys where ["variant", "transform", "spec"].contains(key.name) {
                for text in [
                    "overlay=/x@north", "a=overlay=/x", "a=png,overlay=/x", "grey,overlay=/x",
                ] {
                    let file = Self.file(
                        "[\(table)]\n\(key.name) = \"\(text)\"", isForeign: true)
                    #expect(file.problems.count == 1 && file.settings.isEmpty, "\(text)")
                }
            }
        }
    }

    @Test(arguments: [
        ("[variant.a]\nresize = \"64x64!,png,overlay=private.png@south-east\"", "resize"),
        ("[variant.a]\nquality = \"5,overlay=private.png\"", "quality"),
        ("[variant.a]\nencode = \"png,overlay=private.png\"", "encode"),
        ("[list.a]\nfile = [[\"../a\"]]", "file"),
    ])
    func messagesNameKeyAndLine(text: String, key: String) {
        let problems = Self.file(text).problems.map(\.description)
        #expect(problems.first?.hasPrefix("c:2: '\(key)' takes ") == true, "\(problems)")
        #expect(problems.count == 1)
    }

    private static func file(_ text: String, isForeign: Bool = false) -> ConfigurationFile {
        ConfigurationFile(Array(text.utf8), path: "c", keys: .ofRun, isForeign: isForeign)
    }

    /// Each machine takes only its shard of a named list, too.
    @Test func aNamedListHasTheOptionsOfTheRun() throws {
        let command = try ParsedRun.command(
            ["@shop"], file: "[list.shop]\nfile = \"shop.txt\"\nformat = \"csv\"")
        var options = ManifestOptions()
        options.shard = ShardFilter(index: 3) { { _, _ in 3 } }
        let files = try command.invocation.lists.files(of: "@shop", options: options)
        #expect(files.map { $0.options.shard?.index } == [3])
        #expect(files.map { $0.options.format } == [.csv])
    }

    /// The place and key of each mistake.
    private static func problems(_ table: String, _ key: String, _ value: String) -> [String] {
        let value = TOMLText.value(value, isNumber: false)
        return file("[\(table)]\n\(key) = \(value)").problems.map { problem in
            let words = problem.description.split(separator: " ", omittingEmptySubsequences: false)
            return words.prefix(2).joined(separator: " ")
        }
    }
}
