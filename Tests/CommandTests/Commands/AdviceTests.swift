import TestSupport
import Testing

/// Arguments that the parser would misunderstand.
@Suite(.timeLimit(.minutes(5)))
struct AdviceTests {
    @Test(arguments: [
        (["failed", "ls"], "failed ls: no such command", "did you mean `prefetch failed list`?"),
        (["hosts", "rm"], "hosts rm: no such command", "did you mean `prefetch hosts clear`?"),
        (["attr", "x"], "attr x: no such command", "`prefetch attr --help` lists the commands"),
        (
            ["--cache-dir", "a", "list", "--cache-dir=b"], "--cache-dir is given twice",
            "a command uses one cache"
        ),
    ])
    func unknownCommandsAndTwoCachesAreRefused(
        arguments: [String], message: String, hint: String
    ) async throws {
        try await withWorkspace { workspace in
            let result = try await workspace.command(arguments).run()
            #expect(result.status == 64, "\(result)")
            #expect(result.error.hasPrefix("prefetch: \(message)\nhint: \(hint)\n"), "\(result)")
        }
    }

    @Test(arguments: [
        ("--until", "25:00", "a time from 00:00 to 23:59"),
        ("--host-rate", "2/x", "a rate like 2/s, 30/m or 100/h"),
        ("--accept-status", "44", "statuses like 404,500-502 or 4xx, or none"),
        ("--blacklist-status", "x", "statuses like 404,500-502 or 4xx, or none"),
        ("--accept-type", "image", "types like image/png or image/*"),
        ("--ttl", "5x", "a duration like 500ms, 90s, 5m, 12h or 30d"),
    ])
    func wrongValuesAreRefusedWithTheirForm(
        flag: String, value: String, form: String
    ) async throws {
        try await withWorkspace { workspace in
            let result = try await workspace.run("list.txt", flag, value)
            #expect(result.status == 64, "\(result)")
            let line = result.error.split(separator: "\n").first ?? ""
            #expect(line.hasSuffix(": it takes \(form)"), "\(result)")
        }
    }

    @Test func listsOfConfigurationFilesAreSuggested() async throws {
        try await withWorkspace { workspace in
            try workspace.writeConfiguration("[list.shop]\nfile = 'a'", to: "c.toml")
            let result = try await workspace.run("run", "shop", "--config", "c.toml")
            #expect(result.status == 2, "\(result)")
            #expect(result.error.hasSuffix("\nhint: did you mean @shop?\n"), "\(result)")
        }
    }

    @Test func listsWithACommandsNameAreFound() async throws {
        try await withWorkspace { workspace in
            _ = try workspace.manifest([], name: "failed")
            let result = try await workspace.run("failed", "more.txt")
            #expect(result.status == 64, "\(result)")
            #expect(result.error.contains("./failed"), "\(result)")
        }
    }

    /// A dry run names the images, for `remove --batch` and the like.
    @Test func dryRunsPrintKeys() async throws {
        try await withOrigin { origin in
            let urls = origin.serveImages(3)
            try await withWorkspace { workspace in
                _ = try await workspace.prefetch(urls, "--variant", "thumb=4x4")
                let keys = urls.sorted().map { $0 + "\n" }.joined()
                let prune = try await workspace.run("prune", "--max-files", "0", "-n")
                let lines = prune.outputLines.sorted().map { $0 + "\n" }.joined()
                #expect(lines == keys, "\(prune)")
                let json = try await workspace.run("prune", "--max-files", "0", "-n", "--json")
                let objects = try json.jsonLines()
                #expect(objects.count == 4 && objects[3]["type"] as? String == "summary", "\(json)")
                #expect(Set(objects.compactMap { $0["key"] as? String }) == Set(urls), "\(json)")
                let remove = try await workspace.run("remove", urls[1], "-n")
                #expect(remove.output == urls[1] + "\n", "\(remove)")
                let variant = try await workspace.run("remove", "--all", "--variant", "thumb", "-n")
                #expect(
                    variant.outputLines.allSatisfy { $0.contains("\t") }
                        && variant.outputLines.count == 3, "\(variant)")
                let quiet = try await workspace.run("prune", "--max-files", "0", "-n", "-q")
                #expect(quiet.output.isEmpty && quiet.error.isEmpty, "\(quiet)")
                #expect(try await workspace.query("SELECT count(*) FROM variant") == [["6"]])
            }
        }
    }
}
