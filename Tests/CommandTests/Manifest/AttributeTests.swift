import Foundation
import TestSupport
import Testing

/// Attributes that users give; ``PlaceholderCommandTests`` tests the program's own.
@Suite(.timeLimit(.minutes(15)))
struct AttributeTests {
    /// Serves one image, warms the cache with it and hands over its URL.
    private func withImage(
        _ body: (Origin, Workspace, String) async throws -> Void
    ) async throws {
        try await withOrigin { origin in
            let url = origin.serveImages(1)[0]
            try await withWorkspace(without: [.retries, .probes, .stalls, .placeholders]) {
                workspace in
                let run = try await workspace.prefetch([url])
                #expect(run.summary.outcomes == ["downloaded": 1], "\(run.result)")
                try await body(origin, workspace, url)
            }
        }
    }

    private func attributes(_ workspace: Workspace, _ url: String) async throws -> [String: Any] {
        let result = try await workspace.run("attr", "list", url, "--json")
        #expect(result.status == 0 && result.error.isEmpty, "\(result)")
        let object = try result.jsonLines()
        #expect(object.count == 1 && object.first?["key"] as? String == url, "\(result)")
        return try #require(object.first?["attributes"] as? [String: Any])
    }

    // MARK: Values

    static let values: [[UInt8]] = [
        [], [0], [0, 10, 13, 0xFF, 0xFE, 0], Array("text\n".utf8), [0xEF, 0xBB, 0xBF],
        (0..<65_536).map { UInt8(truncatingIfNeeded: $0 &* 31) },
    ]

    @Test func valuesOfAnyBytesComeBackAsTheyWere() async throws {
        try await withImage { _, workspace, url in
            try await expectOtherValuesRefused(workspace, url)
            for value in AttributeTests.values {
                try workspace.write(value, to: "value")
                let set = try await workspace.run("attr", "set", url, "file", "--file", "value")
                #expect(set.status == 0 && set.output.isEmpty && set.error.isEmpty, "\(set)")
                var command = workspace.command(["attr", "set", url, "stdin", "--file", "-"])
                command.input = .bytes(value)
                #expect(try await command.run().status == 0)
                for name in ["file", "stdin"] {
                    let get = try await workspace.run("attr", "get", url, name)
                    #expect(get.status == 0 && get.outputBytes == value, "\(get)")
                }
                let listed = try await attributes(workspace, url)
                for name in ["file", "stdin"] {
                    if let text = listed[name] as? String {
                        #expect(Array(text.utf8) == value)
                    } else {
                        let object = try #require(listed[name] as? [String: String])
                        #expect(Data(base64Encoded: object["base64"] ?? "-") == Data(value))
                        #expect(String(validating: value, as: UTF8.self) == nil)
                    }
                }
            }
        }
    }

    /// Values that are too long, unreadable or not the user's bytes.
    private func expectOtherValuesRefused(_ workspace: Workspace, _ url: String) async throws {
        let value = [UInt8](repeating: 7, count: 65_537)
        try workspace.write(value, to: "value")
        let file = try await workspace.run("attr", "set", url, "n", "--file", "value")
        var command = workspace.command(["attr", "set", url, "n", "--file", "-"])
        command.input = .bytes(value + value)
        for result in [file, try await command.run()] {
            #expect(result.status == 64 && result.error.contains("65536"), "\(result)")
        }
        for name in ["nowhere", "."] {
            let missing = try await workspace.run("attr", "set", url, "n", "--file", name)
            #expect(missing.status == 2 && missing.error.contains(name), "\(missing)")
        }
        // Swift sees such an argument with its bytes replaced; another name or value would be
        // stored.
        for arguments in ["\"$URL\" n $(printf 'a\\377')", "\"$URL\" $(printf 'a\\377') v"] {
            var command = workspace.command([
                "-c", "exec \"$PREFETCH\" attr set \(arguments)",
            ])
            command.environment["PREFETCH"] = command.executable
            command.environment["URL"] = url
            command.executable = "/bin/sh"
            let result = try await command.run()
            #expect(result.status == 64 && result.error.contains("UTF-8"), "\(result)")
        }
        #expect(try await attributes(workspace, url).isEmpty)
    }

    @Test func aValueIsReplacedOrRemovedAndOthersStay() async throws {
        try await withImage { _, workspace, url in
            for (name, value) in [("a", "1"), ("b", "2"), ("a", "3"), ("c", "")] {
                let set = try await workspace.run("attr", "set", url, name, value)
                #expect(set.status == 0, "\(set)")
            }
            let list = try await workspace.run("attr", "list", url)
            #expect(list.output == "a\t3\nb\t2\nc\t\n", "\(list)")
            let removed = try await workspace.run("attr", "rm", url, "a", "nothing", "c")
            #expect(removed.status == 1, "\(removed)")
            #expect(removed.error.contains("nothing"), "\(removed)")
            let rest = try await workspace.run("attr", "list", url)
            #expect(rest.output == "b\t2\n", "\(rest)")
            #expect(try await workspace.run("attr", "rm", url, "b").status == 0)
            let none = try await workspace.run("attr", "list", url)
            #expect(none.status == 0 && none.output.isEmpty, "\(none)")

            let other = url + "\u{1B}[2J?token=SECRET"
            for arguments in [
                ["get", other, "n"], ["set", other, "n", "v"], ["list", other],
                ["list", other, "--json"], ["rm", other, "n"], ["get", url, "n"],
                ["rm", url, "n"],
            ] {
                let result = try await workspace.command(["attr"] + arguments).run()
                #expect(result.status == 1 && result.output.isEmpty, "\(result)")
                #expect(result.error.hasPrefix("prefetch: http://"), "\(result)")
                #expect(!result.errorBytes.contains(0x1B), "\(result)")
                #expect(!result.error.contains("SECRET"), "\(result)")
            }
        }
    }

    // MARK: Names

    static let goodNames = [
        "n", String(repeating: "é", count: 127) + "x", "with space", "'; DROP TABLE attribute; --",
        "\"", "%", "?1", "prefetch", "Prefetch.x", "e\u{301}", "é", "{}", "a=b",
    ]

    @Test func namesAreAnyTextOfUpTo255Bytes() async throws {
        try await withImage { _, workspace, url in
            for (number, name) in Self.goodNames.enumerated() {
                let set = try await workspace.run("attr", "set", url, name, "\(number)")
                #expect(set.status == 0, "\(set)")
            }
            // By bytes: Swift's equality, and so a dictionary, joins two ways of writing é.
            let list = try await workspace.run("attr", "list", url)
            let lines = Self.goodNames.enumerated().map { Array("\($1)\t\($0)".utf8) }
            #expect(
                Set(list.outputBytes.split(separator: 10).map(Array.init)) == Set(lines), "\(list)")
            for (number, name) in Self.goodNames.enumerated() {
                let get = try await workspace.run("attr", "get", url, name)
                #expect(get.output == "\(number)", "\(get)")
            }
            // Two hyphens precede arguments that start with one.
            let set = try await workspace.run("attr", "set", url, "--", "-n", "-5")
            #expect(set.status == 0, "\(set)")
            let get = try await workspace.run("attr", "get", url, "--", "-n")
            #expect(get.output == "-5", "\(get)")
        }
    }

    // MARK: Which image

    @Test func imagesAreNamedByURLOrKey() async throws {
        try await withOrigin { origin in
            let urls = origin.serveImages(2)
            let key = "it's; \"a\"-%_key"
                .replacingOccurrences(of: " ", with: "\u{A0}")
            try await withWorkspace(without: .placeholders) { workspace in
                _ = try await workspace.prefetch([urls[0], "\(urls[1]) key=\(key)"])
                let spelling = urls[0].replacingOccurrences(of: "http://", with: "HTTP://u:p@")
                for (name, value) in [(spelling + "#part", "one"), (key, "two")] {
                    let set = try await workspace.run("attr", "set", name, "n", value)
                    #expect(set.status == 0, "\(set)")
                }
                // Also by the URL of the line with the key.
                for (name, value) in [(urls[0], "one"), (key, "two"), (urls[1], "two")] {
                    let get = try await workspace.run("attr", "get", name, "n")
                    #expect(get.output == value, "\(get)")
                }
                for (name, output) in [(key, "n\ttwo\n"), (urls[1], "n\ttwo\n")] {
                    let list = try await workspace.run("attr", "list", name)
                    #expect(list.output == output, "\(list)")
                }
                for name in [spelling, urls[1]] {
                    let removed = try await workspace.run("attr", "rm", name, "n")
                    #expect(removed.status == 0, "\(removed)")
                    #expect(try await workspace.run("attr", "list", name).output.isEmpty)
                }
            }
        }
    }

    // MARK: With runs

    @Test func manifestsSetAttributesAlsoOfFreshImages() async throws {
        try await withOrigin { origin in
            let url = origin.serveImages(1)[0]
            let responses = (0..<2).map { seed in
                Response(
                    headers: [("Cache-Control", "max-age=0")], body: Fixtures.png(seed: seed),
                    type: "image/png")
            }
            origin.serve("/a.png", responses[0], responses[1])
            let stale = origin.url("/a.png")
            try await withWorkspace(without: .placeholders) { workspace in
                for (fields, listed) in [
                    ("attr.title=one attr.other=x", "other\tx\ntitle\tone\n"),
                    ("attr.title=two", "other\tx\ntitle\ttwo\n"),
                    ("", "other\tx\ntitle\ttwo\n"),
                ] {
                    let run = try await workspace.prefetch(["\(url) \(fields)"])
                    #expect(run.result.status == 0, "\(run.result)")
                    let list = try await workspace.run("attr", "list", url)
                    #expect(list.output == listed, "\(list)")
                }
                #expect(origin.requests.count == 1)

                // They stay when another picture replaces their image.
                let first = try await workspace.prefetch([stale + " attr.list=m"])
                let set = try await workspace.run("attr", "set", stale, "mine", "v")
                #expect(set.status == 0, "\(set)")
                let second = try await workspace.prefetch([stale])
                #expect(second.summary.outcomes == ["downloaded": 1], "\(second.result)")
                #expect(second.report.entries.first?.sha256 != first.report.entries.first?.sha256)
                let list = try await workspace.run("attr", "list", stale)
                #expect(list.output == "list\tm\nmine\tv\n", "\(list)")
            }
        }
    }

    // MARK: Output

    @Test func nothingShownSteersATerminal() async throws {
        try await withImage { _, workspace, url in
            let evil = "\u{1B}]0;x\u{7}\u{9B}2J\u{202E}\u{2066}\r\n\u{0}\u{7F}\u{2028}"
            try workspace.write(Array(evil.utf8), to: "value")
            // Format characters are allowed in names, controls are not.
            let name = "a\u{202E}b\u{2066}"
            let set = try await workspace.run("attr", "set", url, name, "--file", "value")
            #expect(set.status == 0, "\(set)")
            let list = try await workspace.run("attr", "list", url)
            let json = try await workspace.run("attr", "list", url, "--json")
            let all = try await workspace.run("list", "--json")
            let get = try await workspace.run("get", url, "--json")
            for result in [list, json, all, get] {
                #expect(result.status == 0, "\(result)")
                #expect(result.outputLines.count == 1, "\(result)")
                #expect(
                    !result.output.unicodeScalars.contains { scalar in
                        scalar != "\n" && scalar != "\t"
                            && (scalar.properties.generalCategory == .control
                                || scalar.properties.generalCategory == .format
                                || scalar.properties.generalCategory == .lineSeparator)
                    }, "\(result)")
            }
            for result in [json, all, get] {
                let object = try #require(try result.jsonLines().first)
                let attributes = try #require(object["attributes"] as? [String: String])
                #expect(Array((attributes[name] ?? "").utf8) == Array(evil.utf8), "\(result)")
            }
            let missing = try await workspace.run("attr", "get", url, "\u{1B}[2J\u{202E}")
            #expect(missing.status == 1, "\(missing)")
            #expect(!missing.error.unicodeScalars.contains("\u{1B}"), "\(missing)")
            #expect(!missing.error.unicodeScalars.contains("\u{202E}"), "\(missing)")
        }
    }

    @Test func listAndGetShowAttributesAsJSON() async throws {
        try await withOrigin { origin in
            origin.serve("/a", .image(try Fixtures.file("larger.jpg")))
            let plain = origin.serveImages(1)[0]
            let url = origin.url("/a")
            try await withWorkspace(without: .placeholders) { workspace in
                for quality in ["30", "70"] {
                    _ = try await workspace.prefetch(
                        ["\(url) attr.title=t attr.n=\"\\\"\"", plain], "--quality", quality)
                }
                let list = try await workspace.run("list", "--json")
                let objects = try list.jsonLines()
                #expect(objects.count == 4, "\(list)")
                for object in objects {
                    let attributes = try #require(object["attributes"] as? [String: String])
                    let wanted = object["key"] as? String == url ? ["title": "t", "n": "\""] : [:]
                    #expect(attributes == wanted, "\(list)")
                }
                let get = try await workspace.run("get", url, "--json")
                let object = try #require(try get.jsonLines().first)
                #expect(object["attributes"] as? [String: String] == ["title": "t", "n": "\""])
                // The lines for people have no more columns than without attributes.
                let text = try await workspace.run("list")
                for line in text.outputLines {
                    let columns = line.split(separator: "\t").dropFirst(7)
                    #expect(columns.isEmpty || columns == ["main", "superseded"], "\(text)")
                }
                #expect(!text.output.contains("title"), "\(text)")
            }
        }
    }

    @Test func readsACacheThatCannotBeWritten() async throws {
        try await withImage { _, workspace, url in
            let set = try await workspace.run("attr", "set", url, "n", "v")
            #expect(set.status == 0, "\(set)")
            let manager = FileManager.default
            let names = ["", "/prefetch.sqlite", "/lock"]
            // Without a log and with one.
            for round in 0..<2 {
                for name in names {
                    try manager.setAttributes(
                        [.posixPermissions: name.isEmpty ? 0o500 : 0o400],
                        ofItemAtPath: workspace.cache + name)
                }
                for (arguments, output) in [
                    (["attr", "get", url, "n"], "v"), (["attr", "list", url], "n\tv\n"),
                    (["failed", "list"], ""), (["hosts"], ""),
                ] {
                    let result = try await workspace.command(arguments).withoutPrivileges().run()
                    #expect(result.status == 0 && result.output == output, "\(result)")
                }
                for arguments in [["get", url], ["list", "--json"], ["stats"], ["history"]] {
                    let result = try await workspace.command(arguments).withoutPrivileges().run()
                    #expect(result.status == 0 && !result.output.isEmpty, "\(result)")
                }
                for arguments in [
                    ["attr", "set", url, "n", "w"], ["failed", "clear"], ["hosts", "clear"],
                ] {
                    let result = try await workspace.command(arguments).withoutPrivileges().run()
                    #expect(result.status == 2 && result.error.contains("hint: "), "\(result)")
                }
                for name in names {
                    try manager.setAttributes(
                        [.posixPermissions: name.isEmpty ? 0o700 : 0o600],
                        ofItemAtPath: workspace.cache + name)
                }
                if round == 0 {
                    let run = try await workspace.prefetch([url])
                    #expect(run.summary.outcomes == ["fresh": 1], "\(run.result)")
                }
            }
        }
    }
}
