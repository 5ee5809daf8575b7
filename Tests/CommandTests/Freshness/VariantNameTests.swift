import TestSupport
import Testing

/// Names of variants in the commands that only read.
@Suite(.timeLimit(.minutes(15)))
struct VariantNameTests {
    private static let web = ["--variant", "web=jpeg,q=40"]

    private func run(
        _ workspace: Workspace, _ lines: [String], _ options: [String]
    ) async throws -> Workspace.Run {
        let run = try await workspace.prefetch(lines, options)
        #expect(run.result.status == 0, "\(run.result)")
        return run
    }

    /// Runs `body` with the URLs of two JPEGs that are fresh for an hour.
    private func withJPEGs(
        _ body: (_ workspace: Workspace, _ urls: [String]) async throws -> Void
    ) async throws {
        try await withOrigin { origin in
            let urls = try ["larger.jpg", "baseline.jpg"].map { name in
                origin.serve(
                    "/\(name)",
                    .picture(try Fixtures.file(name), ("Cache-Control", "max-age=3600")))
                return origin.url("/\(name)")
            }
            try await withWorkspace { try await body($0, urls) }
        }
    }

    private func got(_ workspace: Workspace, _ arguments: String...) async throws -> String {
        let result = try await workspace.command(["get"] + arguments).run()
        #expect(result.status == 0, "\(result)")
        return String(result.output.dropLast().dropFirst("\(workspace.cache)/".count))
    }

    private func path(_ name: String, _ run: Workspace.Run) throws -> String {
        let variants = try #require(run.report.entries.first?.variants)
        return try #require(variants.first { $0.name == name }?.path)
    }

    /// Returns names and recipes of the first image.
    private func uses(_ workspace: Workspace) async throws -> [[String?]] {
        try await workspace.query(
            """
            SELECT variant_name.name, variant.recipe, superseded FROM variant
            JOIN variant_name ON variant_name.id = variant.name ORDER BY 1, 2
            """)
    }

    @Test func getNeedsNoRecipe() async throws {
        try await withJPEGs { workspace, urls in
            let first = try await run(workspace, [urls[0]], VariantNameTests.web)
            _ = try await run(workspace, [urls[1]], [])
            let (main, web) = (try path("main", first), try path("web", first))
            #expect(main != web)
            #expect(try await got(workspace, urls[0]) == main)
            #expect(try await got(workspace, "--variant", "main", urls[0]) == main)
            #expect(try await got(workspace, "--variant", "web", urls[0]) == web)
            let object = try await workspace.run("get", "--json", "--variant", "web", urls[0])
            #expect(object.output.contains("\"variant\":\"web\""), "\(object)")
            #expect(
                try await workspace.run("get", "--json", urls[0]).output.contains(
                    "\"variant\":\"main\""))

            let other = try await workspace.run("get", "--variant", "web", urls[1])
            #expect(other.status == 1 && other.output.isEmpty, "\(other)")
            #expect(
                other.error.contains(": not stored as web, only as main\nhint: --variant main"),
                "\(other)")

            var batch = workspace.command(["get", "--batch", "--variant", "web"])
            batch.input = .bytes(Array(urls.map { $0 + "\n" }.joined().utf8))
            let plain = try await batch.run()
            #expect(plain.status == 1)
            #expect(plain.output == "\(workspace.cache)/\(web)\n-\n", "\(plain)")
            batch.arguments.append("--json")
            let json = try await batch.run()
            let objects = try json.jsonLines()
            try #require(objects.count == 2, "\(json)")
            #expect(objects[0]["variant"] as? String == "web")
            #expect(objects[1]["variant"] as? String == "web")
            #expect(objects[1]["message"] as? String == "not stored as web, only as main")

            // A name that no image has is wrong usage.
            for arguments in [[urls[0]], ["--batch"]] {
                let near = try await workspace.command(
                    ["get", "--variant", "wbe"] + arguments
                ).run()
                #expect(near.status == 64 && near.output.isEmpty, "\(near)")
                #expect(
                    near.error
                        == "prefetch: --variant: unknown variant 'wbe' (did you mean 'web'?); "
                        + "the cache has main, web\n",
                    "\(near)")
            }
            let far = try await workspace.run("get", "--variant", "thumbnail", urls[0])
            #expect(far.status == 64 && !far.error.contains("did you mean"), "\(far)")
            let both = try await workspace.run(
                "get", "--variant", "web", "--recipe", "png", urls[0])
            #expect(both.status == 64, "\(both)")
        }
    }

    @Test func listAndStatsNameVariants() async throws {
        try await withJPEGs { workspace, urls in
            _ = try await run(workspace, [urls[0]], [])
            let before = try await workspace.run("stats")
            #expect(!before.output.contains("main"), "\(before)")
            _ = try await run(workspace, [urls[0]], VariantNameTests.web)
            let list = try await workspace.run("list")
            let rows = list.outputLines.map { $0.split(separator: "\t") }
            #expect(rows.map(\.count).sorted() == [7, 8], "\(list)")
            #expect(rows.first { $0.count == 8 }?.last == "web", "\(list)")
            let shown = try await workspace.command(["list"]).onTerminal().run()
            #expect(shown.output.contains("larger.jpg  web"), "\(shown)")
            let objects = try await workspace.run("list", "--json").jsonLines()
            #expect(objects.compactMap { $0["variant"] as? String }.sorted() == ["main", "web"])
            let stats = try await workspace.run("stats")
            #expect(stats.output.contains("            main: 1 variant,"), "\(stats)")
            #expect(stats.output.contains("            web: 1 variant,"), "\(stats)")
            let sums = try await workspace.run("stats", "--json").jsonLines()
            let names = sums.first?["variant_names"] as? [String: [String: Int]]
            #expect(names?["web"]?["variants"] == 1 && names?.count == 2, "\(sums)")
        }
    }

    @Test func newRecipeSupersedesOnlyItsName() async throws {
        try await withJPEGs { workspace, urls in
            _ = try await run(workspace, [urls[0]], VariantNameTests.web)
            let second = try await run(workspace, [urls[0]], ["--variant", "web=png"])
            #expect(
                try await uses(workspace) == [
                    ["main", "same;q=85;strip=safe", "0"], ["web", "jpeg;q=40;strip=safe", "1"],
                    ["web", "png;strip=safe", "0"],
                ])
            #expect(try await got(workspace, "--variant", "web", urls[0]) == path("web", second))
            let listed = try await workspace.run("list", "--json").jsonLines()
            let superseded = listed.filter { $0["superseded"] as? Bool == true }
            #expect(superseded.map { $0["format"] as? String } == ["jpeg"], "\(listed)")
            #expect(listed.filter { $0["superseded"] as? Bool == false }.count == 2, "\(listed)")
            let rows = try await workspace.run("list").outputLines
                .map { $0.split(separator: "\t").dropFirst(7).map(String.init) }
            #expect(rows.sorted { $0.count < $1.count } == [[], ["web"], ["web", "superseded"]])
            let stats = try await workspace.run("stats")
            #expect(stats.output.contains("variants    3 (1 superseded)\n"), "\(stats)")
            let sums = try await workspace.run("stats", "--json").jsonLines()
            #expect(sums.first?["superseded"] as? Int == 1, "\(sums)")
            // All are stored: nothing is requested, and the variants in use change.
            let third = try await run(workspace, [urls[0]], VariantNameTests.web)
            #expect(third.report.verdicts == ["fresh"])
            #expect(
                try await uses(workspace) == [
                    ["main", "same;q=85;strip=safe", "0"], ["web", "jpeg;q=40;strip=safe", "0"],
                    ["web", "png;strip=safe", "1"],
                ])
            #expect(try await got(workspace, "--variant", "web", urls[0]) == path("web", third))
        }
    }

    @Test func twoNamesOfOneRecipeAreOneVariant() async throws {
        try await withJPEGs { workspace, urls in
            let two = ["--variant", "a=png", "--variant", "b=png", "--variant", "c=same"]
            let first = try await run(workspace, [urls[0]], two)
            let (main, png) = (try path("main", first), try path("a", first))
            #expect(
                try await uses(workspace) == [
                    ["a", "png;strip=safe", "0"], ["main", "same;q=85;strip=safe", "0"],
                ])
            for (name, path) in [("main", main), ("a", png), ("b", png), ("c", main)] {
                #expect(try await got(workspace, "--variant", name, urls[0]) == path, "\(name)")
            }
            #expect(try await workspace.judge(variants: ["main", "a", "b", "c"]) == 2)
            _ = try await run(
                workspace, [urls[0]], ["--variant", "a=jpeg,q=40", "--variant", "b=png"])
            #expect(
                try await uses(workspace) == [
                    ["a", "jpeg;q=40;strip=safe", "0"], ["b", "png;strip=safe", "0"],
                    ["main", "same;q=85;strip=safe", "0"],
                ])
            // A name that a run omits keeps its variant, also when another run omits it too.
            _ = try await run(workspace, [urls[0]], ["--quality", "30"])
            #expect(try await got(workspace, "--variant", "c", urls[0]) == main)
            #expect(try await got(workspace, "--variant", "b", urls[0]) == png)
        }
    }

    /// Main is the variant that the last run used, under any other name.
    @Test func mainMayTakeAnotherNamesRecipe() async throws {
        try await withJPEGs { workspace, urls in
            let first = try await run(workspace, [urls[0]], ["--variant", "web=png"])
            let (main, web) = (try path("main", first), try path("web", first))
            let second = try await run(workspace, [urls[0]], ["--encode", "png"])
            #expect(second.report.verdicts == ["fresh"] && second.report.entries.first?.path == web)
            #expect(try await got(workspace, urls[0]) == web)
            #expect(try await got(workspace, "--variant", "web", urls[0]) == web)
            let third = try await run(workspace, [urls[0]], [])
            #expect(third.report.verdicts == ["fresh"])
            #expect(try await got(workspace, urls[0]) == main)
            // Swapped names are swapped in the database.
            _ = try await run(workspace, [urls[0]], ["--variant", "web=png"])
            let swapped = try await run(
                workspace, [urls[0]], ["--encode", "png", "--variant", "web=same"])
            #expect(swapped.report.verdicts == ["fresh"])
            #expect(try await got(workspace, urls[0]) == web)
            #expect(try await got(workspace, "--variant", "web", urls[0]) == main)
            #expect(try await workspace.judge(variants: ["main", "web"]) == 2)
            // A run over another list uses the web variant as main.
            _ = try await run(workspace, [urls[0]], ["--variant", "web=png"])
            _ = try await run(workspace, [urls[1]], ["--encode", "png"])
            #expect(try await got(workspace, urls[0]) == main)
            #expect(try await got(workspace, "--variant", "web", urls[0]) == web)
        }
    }
}
