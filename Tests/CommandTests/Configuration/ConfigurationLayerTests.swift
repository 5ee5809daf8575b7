import Foundation
import TestSupport
import Testing

/// Flags, variables and files, as a run sees them.
@Suite(.timeLimit(.minutes(15)))
struct ConfigurationLayerTests {
    /// The layers in a workspace that may set `quality`, the highest first.
    private enum Layer: Int, CaseIterable {
        case flag, variable, projectProfile, userProfile, systemProfile, project, user, system

        var quality: Int { 10 + rawValue }
        var isSystem: Bool { self == .system || self == .systemProfile }
        var isProfile: Bool {
            self == .projectProfile || self == .userProfile || self == .systemProfile
        }
    }

    /// In place of `/etc/prefetch/config.toml`, see ``atSystem(_:)``.
    private static let systemFile = "system.toml"

    /// Runs the command in a namespace of mounts with ``systemFile`` as the system's.
    private static func atSystem(_ command: Command) -> Command {
        var wrapped = command
        wrapped.executable = Namespace.program
        wrapped.arguments =
            [
                "-rm", "/bin/sh", "-c",
                """
                mount -t tmpfs tmpfs /etc && mkdir /etc/prefetch \
                    && cp \(systemFile) /etc/prefetch/config.toml && exec "$@"
                """, "sh", command.executable,
            ] + command.arguments
        return wrapped
    }

    private static func write(_ layers: Set<Layer>, in workspace: Workspace) throws {
        let files = [
            (path: "prefetch.toml", root: Layer.project, profile: Layer.projectProfile),
            (".config/prefetch/config.toml", .user, .userProfile),
            (systemFile, .system, .systemProfile),
        ]
        for file in files {
            var text = layers.contains(file.root) ? "quality = \(file.root.quality)\n" : ""
            if layers.contains(file.profile) {
                text += "[profile.p]\nquality = \(file.profile.quality)\n"
            }
            try workspace.writeConfiguration(text, to: file.path)
        }
    }

    @Test func theHighestLayerDecides() async throws {
        try await withWorkspace { workspace in
            let layersOfFiles = Layer.allCases.filter {
                $0 != .flag && (Namespace.allowsMounts || !$0.isSystem)
            }
            // Each one alone, and each above all lower ones; EffectiveSettingsTests has the rule.
            let chosen = layersOfFiles.indices.flatMap { index in
                [[layersOfFiles[index]], Array(layersOfFiles[index...])]
            }
            for layers in [Set<Layer>()] + chosen.map({ Set($0) }) {
                try ConfigurationLayerTests.write(layers, in: workspace)
                var command = workspace.command(["config", "show"])
                if layers.contains(.variable) { command.environment["PREFETCH_QUALITY"] = "11" }
                if layers.contains(where: \.isProfile) {
                    command.environment["PREFETCH_PROFILE"] = "p"
                }
                if layers.contains(where: \.isSystem) {
                    command = ConfigurationLayerTests.atSystem(command)
                }
                let result = try await command.run()
                let lines = result.outputLines.filter { $0.hasPrefix("quality") }
                let expected = layers.map(\.quality).min().map { ["quality = \($0)"] } ?? []
                #expect(lines == expected, "\(layers): \(result)")
            }
        }
    }

    /// `--no-NAME` for a switch of a file, a profile, a variable or a list.
    @Test func switchesMayBeTakenBack() async throws {
        try await withOrigin { origin in
            let urls = origin.serveImages(1)
            try await withWorkspace { workspace in
                let manifest = try workspace.manifest(urls)
                try workspace.writeConfiguration(
                    """
                    quiet = true
                    [profile.p]
                    quiet = true
                    [list.a]
                    file = "\(manifest)"
                    no-header = true

                    """)
                for (arguments, isQuiet) in [
                    ([manifest], true), ([manifest, "--no-quiet"], false),
                    (["run", "--no-quiet", "@a", "--profile", "p"], false),
                    (["--no-quiet", "--no-store-original", "--", manifest], false),
                    (["--no-header", manifest], true),
                ] {
                    var command = workspace.command(arguments)
                    command.environment["PREFETCH_QUIET"] = "1"
                    let result = try await command.run()
                    #expect(result.status == 0, "\(result)")
                    #expect(result.error.isEmpty == isQuiet, "\(result)")
                }
                for wrong in [["--no-verbose"], ["--no-nothing"], ["-q", "--no-quiet"]] {
                    let result = try await workspace.command([manifest] + wrong).run()
                    #expect(result.status == 64, "\(result)")
                }
                // `false` switches a lower layer off.
                try workspace.writeConfiguration(
                    "allow-empty = true\n", to: ".config/prefetch/config.toml")
                let list = try workspace.manifest([], name: "empty.txt")
                #expect(try await workspace.run(list).status == 0)
                try workspace.writeConfiguration("allow-empty = false\n")
                #expect(try await workspace.run(list).status == 1)
                var command = workspace.command([list])
                command.environment["PREFETCH_ALLOW_EMPTY"] = "yes"
                #expect(try await command.run().status == 0)
            }
        }
    }

    /// `insecure` and `cacert` cannot be combined, so a higher layer's replaces a lower one's.
    @Test func insecureAndAuthoritiesReplaceEachOther() async throws {
        try await withWorkspace { workspace in
            let list = try workspace.manifest(["http://127.0.0.1:9/a.png"])
            try workspace.write(Array("-----BEGIN CERTIFICATE-----\n".utf8), to: "a.pem")
            let user = ".config/prefetch/config.toml"

            try workspace.writeConfiguration("cacert = \"missing.pem\"\n", to: user)
            let insecure = try await workspace.run(list, "--offline", "--insecure")
            #expect(insecure.status == 1 && insecure.error.contains("--insecure:"), "\(insecure)")
            var show = workspace.command(["config", "show"])
            show.environment["PREFETCH_INSECURE"] = "1"
            let shown = try await show.run()
            #expect(shown.outputLines.contains("insecure = true"), "\(shown)")
            #expect(!shown.output.contains("cacert"), "\(shown)")

            try workspace.writeConfiguration("insecure = true\n", to: user)
            let verified = try await workspace.run(list, "--offline", "--cacert", "a.pem")
            #expect(verified.status == 1 && !verified.error.contains("insecure"), "\(verified)")

            try workspace.writeConfiguration("insecure = true\ncacert = \"a.pem\"\n", to: user)
            #expect(try await workspace.run(list, "--offline").status == 64)
        }
    }

    @Test func flagsReplaceAllLayers() async throws {
        try await withOrigin { origin in
            let urls = origin.serveImages(3)
            try await withWorkspace { workspace in
                try ConfigurationLayerTests.write(Set(Layer.allCases), in: workspace)
                var command = try workspace.prefetchCommand([urls[0]], ["--quality", "10"])
                command.environment["PREFETCH_QUALITY"] = "11"
                command.environment["PREFETCH_PROFILE"] = "p"
                let result = try await command.run()
                #expect(result.status == 0, "\(result)")
                let recipes = try await workspace.query("SELECT recipe FROM variant")
                #expect(recipes == [["same;q=10;strip=safe"]], "\(recipes)")
                // The parser would take the argument after `--user-agent=` for its value.
                try workspace.writeConfiguration("user-agent = \"\"\n")
                let empty = try await workspace.command(Array(urls[1...])).run()
                #expect(empty.status == 0, "\(empty)")
                #expect(origin.requests.count == 3)
            }
        }
    }

    @Test func configNamesTheOnlyFile() async throws {
        try await withWorkspace { workspace in
            let list = try workspace.manifest([])
            try workspace.writeConfiguration("nonsense = 1")
            try workspace.writeConfiguration("allow-empty = true\n", to: "other.toml")
            #expect(try await workspace.run(list).status == 64)
            // Commands over the cache do not depend on it.
            let get = try await workspace.run("get", "http://127.0.0.1:9/a", "--cache-dir", "c")
            #expect(!get.error.contains("prefetch.toml"), "\(get)")
            #expect(try await workspace.run(list, "--config", "other.toml").status == 0)
            #expect(try await workspace.run("--config=other.toml", "run", list).status == 0)
            #expect(try await workspace.run(list, "--config", "none").status == 1)
            let missing = try await workspace.run(list, "--config", "missing.toml")
            #expect(missing.status == 2)
            #expect(missing.error.hasPrefix("prefetch: missing.toml: "), "\(missing)")
        }
    }

    @Test func hostsHaveTheirOwnFields() async throws {
        try await withOrigin { origin in
            let urls = origin.serveImages(1)
            try await withWorkspace { workspace in
                try workspace.writeConfiguration(
                    """
                    header = "X-A: all"
                    [host."127.0.0.*"]
                    header = ["X-A: one", "X-B: two"]
                    user-agent = "mine"
                    ttl = "400d"
                    [host."*.example.com"]
                    header = "X-A: other"
                    """)
                let first = try await workspace.prefetch(urls)
                #expect(first.summary.outcomes == ["downloaded": 1], "\(first.result)")
                let second = try await workspace.prefetch(
                    urls, "--refresh", "force", "--user-agent", "theirs", "--header", "X-C: d")
                #expect(second.summary.outcomes["failed"] == nil, "\(second.result)")
                let requests = origin.requests
                try #require(requests.count == 2)
                #expect(requests[0].header("X-A") == "one" && requests[0].header("X-B") == "two")
                #expect(requests[0].header("User-Agent") == "mine")
                #expect(requests[1].header("User-Agent") == "theirs")
                #expect(requests[1].header("X-C") == "d" && requests[1].header("X-A") == nil)
                let expiry = try #require(first.report.entries[0].expiresAt)
                let earliest = Date(timeIntervalSinceNow: 399 * 86400).ISO8601Format()
                #expect(expiry > earliest, "\(expiry)")
            }
        }
    }

    /// `get` and the other commands find the cache of the runs.
    @Test func everyCommandUsesTheCacheOfTheRuns() async throws {
        try await withWorkspace { workspace in
            try workspace.writeConfiguration(
                "cache-dir = \"~/other\"\nquiet = true\njobs = 3\n[profile.p]\n"
                    + "cache-dir = \"\(workspace.folder)/third\"\n",
                to: ".config/prefetch/config.toml")
            func run(_ arguments: String...) async throws -> CommandResult {
                var command = workspace.command(arguments)
                command.environment["PREFETCH_CACHE_DIR"] = nil
                return try await command.run()
            }
            let url = "http://127.0.0.1:9/a.png"
            try workspace.write(Fixtures.file("baseline.jpg"), to: "a.jpg")
            let put = try await run("put", url, "a.jpg")
            #expect(put.status == 0 && put.error.isEmpty, "\(put)")
            let path = try await run("get", url)
            #expect(path.output.hasPrefix(workspace.folder + "/other/"), "\(path)")
            #expect(try await run("attr", "set", url, "a", "b").status == 0)
            #expect(try await run("failed", "list").status == 0)
            #expect(try await run("get", url, "--config", "none").status != 0)
            #expect(try await run("--profile", "p", "get", url).status == 1)
            #expect(try await run("get", url, "--cache-dir", "other").output.hasPrefix("other/"))
            // It has no flag for the cache.
            let merge = try await run("merge", "all", "other", "--no-quiet")
            #expect(merge.status == 0 && merge.error.contains("1 image"), "\(merge)")
            let list = try workspace.manifest([url])
            let fresh = try await run(list, "--offline", "--no-quiet")
            #expect(fresh.status == 0 && fresh.error.contains("1 fresh"), "\(fresh)")
        }
    }

    @Test(
        arguments: [
            (["--version"], 0), (["--help"], 0), (["-h"], 0), (["run", "--help"], 0),
            (["get", "--help"], 0), (["help", "run"], 0), (["config", "--help"], 0),
            (["config", "init", "-"], 0), (["config", "check"], 64), (["stats", "--help"], 0),
        ] as [([String], Int32)])
    func brokenFilesBreakNoHelp(arguments: [String], status: Int32) async throws {
        try await withWorkspace { workspace in
            try workspace.writeConfiguration("nonsense = [")
            let result = try await workspace.command(arguments).run()
            #expect(result.status == status, "\(result)")
        }
    }
}

extension Workspace {
    /// Writes a configuration file, by default the project's.
    func writeConfiguration(_ text: String, to path: String = "prefetch.toml") throws {
        let file = URL(filePath: folder).appending(path: path)
        try FileManager.default.createDirectory(
            at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
        try Data(text.utf8).write(to: file)
    }
}
