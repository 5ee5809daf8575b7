import Foundation
import TestSupport
import Testing

/// Nothing is removed because of a list that may hide images: every kind of such a list, and every
/// command that removes images or files that no list names.
@Suite(.timeLimit(.minutes(15)))
struct PartialListTests {
    /// A list with a part that cannot be read. ListGapTests has every kind of line.
    enum Broken: String, CaseIterable, Sendable {
        case otherScheme, openQuote, missingSitemap, emptyList

        /// The beginning of the messages about it.
        var place: String {
            switch self {
            case .otherScheme: "list.txt:5: "
            case .openQuote: "list.csv:6: "
            case .missingSitemap: "/no.xml: "
            case .emptyList: "none.txt: no entries"
            }
        }
    }

    /// A list with entries that are left out, but hide no image.
    enum Complete: String, CaseIterable, Sendable {
        case emptyURL, pages, excluded, notIncluded
    }

    /// A way to remove images or files that no list names.
    enum Remover: String, CaseIterable, Sendable {
        case maxSize, prune, pruneMaxFiles, pruneLater, unlisted, exportDelete, exportFolder
        case exportShared

        var isExport: Bool { [.exportDelete, .exportFolder, .exportShared].contains(self) }
    }

    private func sitemap(_ urls: [String]) -> String {
        let images = urls.map { "<image><loc>\($0)</loc></image>\n" }.joined()
        return "<urlset><url><loc>http://page.example/</loc>\(images)</url></urlset>"
    }

    /// Writes a list, and returns the arguments for it.
    private func write(
        _ list: Broken, _ urls: [String], _ origin: Origin, _ workspace: Workspace
    ) throws -> [String] {
        var lines = urls
        switch list {
        case .otherScheme:
            lines[4] = lines[4].replacing("http:", with: "htp:")
            return [try workspace.manifest(lines, name: "list.txt")]
        case .openQuote:
            lines = ["url,title"] + urls.map { $0 + #","x""# }
            lines[5] = urls[4] + #","x"#
            return [try workspace.manifest(lines, name: "list.csv")]
        case .missingSitemap:
            origin.serve("/no.xml", .notFound)
            origin.serve("/a.xml", .text(sitemap(Array(urls[..<5])), type: "application/xml"))
            let sitemaps = ["/a.xml", "/no.xml"].map {
                "<sitemap><loc>\(origin.url($0))</loc></sitemap>"
            }
            return [
                try workspace.manifest(
                    ["<sitemapindex>\(sitemaps.joined())</sitemapindex>"], name: "index.xml")
            ]
        case .emptyList:
            return [
                try workspace.manifest(Array(urls[..<5]), name: "list.txt"),
                try workspace.manifest(["# nothing"], name: "none.txt"),
            ]
        }
    }

    private func write(
        _ list: Complete, _ urls: [String], _ workspace: Workspace
    ) throws -> [String] {
        switch list {
        case .emptyURL:
            return [
                try workspace.manifest(
                    ["url,title", ",none"] + urls.map { "\($0),x" }, name: "l.csv")
            ]
        case .pages: return [try workspace.manifest([sitemap(urls)], name: "l.xml")]
        case .excluded: return [try workspace.manifest(urls), "--exclude", "*/3.png"]
        case .notIncluded: return [try workspace.manifest(urls), "--include", "*/[45678].png"]
        }
    }

    private func arguments(
        of remover: Remover, _ list: [String], _ options: [String]
    ) -> [String] {
        let run = ["run"] + list + ["--retry", "0", "--refresh", "none"]
        let arguments =
            switch remover {
            case .maxSize: run + ["--max-size", "8KiB"]
            case .prune, .pruneLater: run + ["--prune", "unlisted-for=1d"]
            case .pruneMaxFiles: run + ["--prune", "max-files=2"]
            case .unlisted: ["prune"] + options + ["--unlisted"] + list
            case .exportDelete:
                ["export", "out"] + list + ["--layout", "mirror", "--update", "--delete"]
            case .exportFolder: ["export", "out"] + list + ["--layout", "mirror"]
            case .exportShared: ["export", "out"] + list + ["--layout", "imagefolder"]
            }
        return remover == .unlisted ? arguments : arguments + options
    }

    private func withImages(
        _ remover: Remover, _ body: (Origin, Workspace, [String]) async throws -> Void
    ) async throws {
        try await withOrigin { origin in
            let urls = origin.serveImages(10)
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let first = try await workspace.prefetch(urls, "--ttl", "90d")
                #expect(first.summary.outcomes == ["downloaded": 10], "\(first.result)")
                if remover.isExport {
                    let layout = remover == .exportShared ? "imagefolder" : "mirror"
                    let export = try await workspace.run("export", "out", "--layout", layout)
                    #expect(export.status == 0, "\(export)")
                }
                try await body(origin, workspace, urls)
            }
        }
    }

    /// The number of images or exported files that are left.
    private func left(_ remover: Remover, _ workspace: Workspace) async throws -> Int {
        guard remover.isExport else {
            return try await workspace.query("SELECT key FROM resource").count
        }
        let files = FileManager.default.enumerator(atPath: workspace.folder + "/out")
        return files?.count { ($0 as? String)?.hasSuffix(".png") == true } ?? 0
    }

    /// One rule decides for all of them, so not every pair is tested.
    private static let brokenPairs: [(Remover, Broken)] =
        Remover.allCases.map { ($0, .openQuote) } + Broken.allCases.map { (.maxSize, $0) } + [
            (.unlisted, .emptyList), (.exportDelete, .missingSitemap), (.exportFolder, .emptyList),
        ]

    private static let completePairs: [(Remover, Complete)] =
        Remover.allCases.map { ($0, .emptyURL) } + Complete.allCases.map { (.maxSize, $0) }

    @Test(arguments: brokenPairs)
    func aListThatIsNotWholeRemovesNothing(_ remover: Remover, _ broken: Broken) async throws {
        try await withImages(remover) { origin, workspace, urls in
            let list = try write(broken, urls, origin, workspace)
            // Stores the sitemaps, for commands that send nothing.
            _ = try await workspace.run("run", list[0], "--retry", "0", "--refresh", "none")
            try await workspace.age(days: 3)
            let result = try await workspace.command(arguments(of: remover, list, [])).run()
            #expect(try await left(remover, workspace) == 10, "\(result)")
            #expect(result.status != 0 && result.error.contains(broken.place), "\(result)")
            #expect(result.error.contains("--allow-partial"), "\(result)")
            if remover == .pruneLater {
                // The list is not whole for days, and then another command prunes.
                for _ in 0..<3 {
                    try await workspace.age(days: 1)
                    _ = try await workspace.command(
                        ["run"] + list + ["--retry", "0", "--refresh", "none"]
                    ).run()
                }
                let later = try await workspace.run("prune", "--unlisted-for", "1d")
                #expect(later.status == 0, "\(later)")
                #expect(try await left(remover, workspace) == 10, "\(later)")
                return
            }
            // Its run has listed everything.
            try await workspace.age(days: 3)
            let allowed = try await workspace.command(
                arguments(of: remover, list, ["--allow-partial"])
            ).run()
            #expect(try await left(remover, workspace) < 10, "\(allowed)")
        }
    }

    @Test(arguments: completePairs)
    func entriesWithoutAnUnknownImageMakeNoListPartial(
        _ remover: Remover, _ complete: Complete
    ) async throws {
        try await withImages(remover) { _, workspace, urls in
            let list = try write(complete, Array(urls[..<9]), workspace)
            try await workspace.age(days: 3)
            let result = try await workspace.command(arguments(of: remover, list, [])).run()
            #expect(!result.error.contains("--allow-partial"), "\(result)")
            let kept = remover == .pruneMaxFiles ? 1 : 9
            #expect(try await left(remover, workspace) == kept, "\(result)")
        }
    }

    /// Entries of other shards are listed, although the run does not take them.
    @Test(arguments: ["0/2", "1/2"], [Remover.maxSize, .prune])
    func aShardKeepsTheImagesOfOthers(_ shard: String, _ remover: Remover) async throws {
        try await withImages(remover) { origin, workspace, urls in
            let others = urls.map { $0.replacing("127.0.0.1", with: "localhost") }
            let second = try await workspace.prefetch(
                others, "--ttl", "90d", "--encode", "original")
            #expect(second.summary.outcomes == ["downloaded": 10], "\(second.result)")
            let list = [try workspace.manifest(urls + others[..<9])]
            try await workspace.age(days: 3)
            let result = try await workspace.command(
                arguments(of: remover, list, ["--shard", shard, "--retry-failed"])
            ).run()
            #expect(try await left(remover, workspace) == 19, "\(result)")
            let bad = [try workspace.manifest(["no url"] + urls[..<5] + others[..<5])]
            try await workspace.age(days: 3)
            let partial = try await workspace.command(
                arguments(of: remover, bad, ["--shard", shard])
            ).run()
            #expect(try await left(remover, workspace) == 19, "\(partial)")
            #expect(partial.error.contains("manifest.txt:1: "), "\(partial)")
        }
    }

    /// The summary for programs names the gap, too.
    @Test func newImagesWithoutRoomFail() async throws {
        try await withImages(.maxSize) { origin, workspace, urls in
            origin.serve("/new", .image(Fixtures.png(seed: 99)))
            let run = try await workspace.prefetch(
                ["no url", origin.url("/new")], "--max-size", "40KiB", "--summary", "json")
            #expect(run.summary.reasons["disk"] == 1, "\(run.result)")
            #expect(try await left(.maxSize, workspace) == 10, "\(run.result)")
            let summary = try #require(try run.result.jsonLines().last)
            let gap = try #require(summary["partial_list"] as? String)
            #expect(gap.contains(".txt:1: "), "\(gap)")
        }
    }
}
