import ArgumentParser
import Foundation
import TestSupport
import Testing

@testable import prefetch

/// `prefetch config`, and lists of configuration files.
@Suite(.timeLimit(.minutes(15)))
struct ConfigCommandTests {
    private static let file = """
        header = ["Authorization: Bearer secret", "Accept: image/webp"]
        user = "me:secret"
        proxy = "http://me:secret@127.0.0.1:9"
        "http1.1" = true
        linear = false
        [variant.thumb]
        resize = "64x64"
        transform = "grey"
        allow-formats = "jpeg,webp"
        encode = "auto"
        [variant.web]
        spec = "webp,q=60"
        [prune]
        unlisted-for = "30d"
        gone = true
        """

    @Test func showsSettingsWithOriginsAndWithoutSecrets() async throws {
        try await withWorkspace { workspace in
            try workspace.writeConfiguration(ConfigCommandTests.file, to: "c.toml")
            var command = workspace.command(["config", "show", "--origins", "--config", "c.toml"])
            command.environment["PREFETCH_JOBS"] = "8"
            let shown = try await command.run()
            #expect(
                shown.output == """
                    jobs = 8  # PREFETCH_JOBS
                    header = ["Authorization: ***", "Accept: image/webp"]  # c.toml:1
                    user = "***"  # c.toml:2
                    proxy = "http://***@127.0.0.1:9"  # c.toml:3
                    "http1.1" = true  # c.toml:4
                    linear = false  # c.toml:5
                    variant = ["thumb=grey,allow-formats=jpeg+webp,auto,resize=64x64", \
                    "web=webp,q=60"]  # c.toml:7, c.toml:12
                    cache-dir = "\(workspace.cache)"  # PREFETCH_CACHE_DIR
                    prune = "unlisted-for=30d,gone"  # c.toml:14

                    """)
            command.arguments = ["config", "show", "--json", "--config", "c.toml"]
            let lines = try await command.run().jsonLines()
            #expect(lines.count == 9 && lines[0]["value"] as? String == "8")
            #expect(lines[1]["value"] as? [String] == ["Authorization: ***", "Accept: image/webp"])
            #expect(
                lines[5]["value"] as? Bool == false && lines[5]["origin"] as? String == "c.toml:5")
            // The output is a configuration file.
            try workspace.write(Array(shown.output.utf8), to: "shown.toml")
            #expect(try await workspace.run("config", "show", "--config", "shown.toml").status == 0)

            // Lists and tables of hosts.
            try workspace.writeConfiguration(
                """
                [list.shop]
                file = ["a.csv", "https://u:p@a.b/c.csv"]
                no-header = true
                [host."*.b"]
                insecure = false
                header = ["X-Key: a"]
                """, to: "d/c.toml")
            let tables = try await workspace.run("config", "show", "--config", "d/c.toml")
            #expect(
                tables.output.hasSuffix(
                    """

                    [list."shop"]
                    file = ["d/a.csv", "https://***@a.b/c.csv"]
                    no-header = true

                    [host."*.b"]
                    insecure = false
                    header = ["X-Key: ***"]

                    """), "\(tables)")
            let json = try await workspace.run("config", "show", "--json", "--config", "d/c.toml")
            let rows = try json.jsonLines()
            #expect(rows.map { $0["list"] as? String } == [nil, "shop", "shop", nil, nil])
            #expect(rows.map { $0["host"] as? String } == [nil, nil, nil, "*.b", "*.b"])
        }
    }

    @Test func checkFindsAllMistakes() async throws {
        try await withWorkspace { workspace in
            try workspace.writeConfiguration(
                """
                jobs = "x"
                quality = 900
                linear = true
                [profile.p]
                retry = -1
                [list.a]
                file = "f"
                base-url = "nonsense"
                """, to: "c.toml")
            let check = try await workspace.run("config", "check", "c.toml")
            #expect(check.status == 64 && check.output.isEmpty)
            let lines = check.error.matches(of: /c\.toml:([0-9]+)/).compactMap { Int($0.output.1) }
            #expect(lines == [1, 2, 3, 5, 8], "\(check)")
            try workspace.writeConfiguration(ConfigCommandTests.file, to: "c.toml")
            let right = try await workspace.run("config", "check", "c.toml")
            #expect(right.status == 0 && right.output == "c.toml: no mistakes\n", "\(right)")
            let none = try await workspace.run("config", "check")
            #expect(none.status == 0 && none.output == "no configuration file\n")
        }
    }

    @Test func initWritesAFileThatCheckAccepts() async throws {
        try await withWorkspace { workspace in
            #expect(try await workspace.run("config", "init").status == 0)
            let again = try await workspace.run("config", "init")
            #expect(again.status == 2)
            #expect(again.error.hasPrefix("prefetch: prefetch.toml: exists already\n"))
            #expect(try await workspace.run("config", "init", "--force").status == 0)
            #expect(try await workspace.run("config", "check").status == 0)
            let text = try String(
                contentsOfFile: workspace.folder + "/prefetch.toml", encoding: .utf8)
            #expect(try await workspace.run("config", "init", "home/.config/c.toml").status == 0)
            let nested = workspace.folder + "/home/.config/c.toml"
            #expect(try String(contentsOfFile: nested, encoding: .utf8) == text)
            let printed = try await workspace.run("config", "init", "-")
            #expect(printed.output == text)
            for row in RunFlags.all {
                let line = "\(TOMLText.key(row.name)) = "
                #expect(text.contains(line) == row.isConfigurable, "\(row.name)")
            }
            // Every default is a value of its key.
            let defaults = text.replacing(#/(?m)^#(?=[a-z"])/#, with: "")
            #expect(defaults.matches(of: #/(?m)^[a-z"]/#).count > 55)
            try workspace.writeConfiguration(defaults, to: "c.toml")
            let check = try await workspace.run("config", "check", "c.toml")
            #expect(check.status == 0, "\(check)")
        }
    }

    @Test func listsOfFilesAreReadWithTheirFlags() async throws {
        try await withWorkspace { workspace in
            try workspace.writeConfiguration(
                """
                [list.shop]
                file = "shop.csv"
                url-column = "pic"
                base-url = "http://127.0.0.1:9/shop/"
                [list.feed]
                file = ["feed.txt", "@more"]
                base-url = "http://127.0.0.1:9/feed/"
                """, to: ".config/prefetch/config.toml")
            for (path, text) in [
                ("shop.csv", "id,pic\n1,a.png\n"), ("feed.txt", "b.png\n"), ("@more", "c.png\n"),
            ] {
                try workspace.writeConfiguration(text, to: ".config/prefetch/" + path)
            }
            let list = try workspace.manifest(["http://127.0.0.1:9/d.png"], name: "@mine")
            func urls(_ arguments: String...) async throws -> [String] {
                let result = try await workspace.command(
                    arguments + ["--offline", "--report", "-"]
                ).run()
                return try result.jsonLines().compactMap { $0["url"] as? String }
            }
            let base = "http://127.0.0.1:9/"
            #expect(try await urls("run", "@shop") == [base + "shop/a.png"])
            #expect(
                try await urls("@feed", "@shop", "./\(list)")
                    == [
                        base + "feed/b.png", base + "feed/c.png", base + "shop/a.png",
                        base + "d.png",
                    ])
            #expect(
                try await urls("@shop", "--base-url", "http://127.0.0.1:8/")
                    == ["http://127.0.0.1:8/a.png"])
            let unknown = try await workspace.run("@shp")
            #expect(unknown.status == 2)
            #expect(
                unknown.error == """
                    prefetch: @shp: no configuration file has a list of this name
                    hint: known are @feed and @shop

                    """)
            #expect(try await workspace.run(list).error.contains("hint: for the file: ./@mine\n"))
        }
    }
}
