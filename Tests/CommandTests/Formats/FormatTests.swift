import Foundation
import TestSupport
import Testing

/// Formats that are decoded and not encoded, from the list to the disk.
@Suite(.timeLimit(.minutes(15)))
struct FormatTests {
    private static let names = [
        "lossless-alpha.webp", "animation.webp", "interlaced.gif", "animation.gif", "lossy.avif",
        "sequence.avif", "png-and-bitmaps.ico",
    ]

    static func file(_ name: String) throws -> [UInt8] {
        let folder = SourceTree.tests.appending(path: "FormatSamples")
        let format = name.split(separator: ".").last.map(String.init) ?? ""
        return [UInt8](try Data(contentsOf: folder.appending(path: "\(format)/\(name)")))
    }

    private static func isAnimation(_ name: String) -> Bool {
        name.hasPrefix("animation") || name.hasPrefix("sequence")
    }

    /// Serves them all, and of each one that is cut.
    private static func serve(_ origin: Origin) throws {
        for name in names {
            let body = try file(name)
            origin.serve("/\(name)", .image(body))
            origin.serve("/cut/\(name)", .image(body.dropLast(body.count / 3)))
        }
    }

    struct Way: Sendable {
        let options: [String]
        /// The stored format for each name.
        let suffixes: [String]
    }

    private static let ways = [
        Way(options: [], suffixes: ["webp", "webp", "gif", "gif", "avif", "avif", "png"]),
        Way(
            options: ["--encode", "png"],
            suffixes: [String](repeating: "png", count: 7)),
        Way(
            options: ["--encode", "jpeg", "--animated", "first"],
            suffixes: [String](repeating: "jpg", count: 7)),
        Way(
            options: ["--animated", "first"],
            suffixes: ["webp", "webp", "gif", "png", "avif", "avif", "png"]),
        Way(
            options: ["--encode", "original"],
            suffixes: ["webp", "webp", "gif", "gif", "avif", "avif", "ico"]),
        Way(
            options: ["--encode", "webp"],
            suffixes: [String](repeating: "webp", count: 7)),
        Way(
            options: ["--encode", "avif", "--animated", "first", "--effort", "fast"],
            suffixes: [String](repeating: "avif", count: 7)),
        Way(
            options: ["--encode", "auto", "--allow-formats", "webp", "--animated", "first"],
            suffixes: [String](repeating: "webp", count: 7)),
    ]

    @Test(arguments: ways)
    func becomeWhatIsAskedFor(way: Way) async throws {
        try await withOrigin { origin in
            try FormatTests.serve(origin)
            let names = FormatTests.names
            let lines = names.map { origin.url("/\($0)") } + names.map { origin.url("/cut/\($0)") }
            try await withWorkspace { workspace in
                let run = try await workspace.finish(
                    workspace.prefetchCommand(lines, way.options).run(), entries: lines.count)
                let entries = run.report.entries.sorted { $0.line < $1.line }
                #expect(
                    entries.map(\.verdict)
                        == names.map { _ in "downloaded" }
                        + names.map { _ in "failed/corrupt-image" },
                    "\(run.result)")
                var sources: [String: [UInt8]] = [:]
                for ((name, suffix), entry) in zip(zip(names, way.suffixes), entries) {
                    let path = try #require(entry.path)
                    #expect(path.hasSuffix("." + suffix), "\(name)")
                    let body = try FormatTests.file(name)
                    sources[entry.key] = body
                    if way.options.contains("original") {
                        #expect(try workspace.bytes(of: path) == body)
                    }
                }
                #expect(try await workspace.judge(sources: sources) == names.count)
                let again = try await workspace.finish(
                    workspace.prefetchCommand(lines, way.options).run(), entries: lines.count)
                #expect(
                    again.report.verdicts.count { $0 == "fresh" } == names.count,
                    "\(again.result)")
            }
        }
    }

    @Test func haveVariants() async throws {
        try await withOrigin { origin in
            try FormatTests.serve(origin)
            let lines = FormatTests.names.map { origin.url("/\($0)") }
            let options = [
                "--variant", "web=jpeg,q=60,animated=first", "--variant", "exact=png",
                "--variant", "small=16x16,webp,animated=first", "--store-original",
            ]
            try await withWorkspace { workspace in
                let run = try await workspace.prefetch(lines, options)
                #expect(run.report.verdicts.allSatisfy { $0 == "downloaded" }, "\(run.result)")
                for (name, line) in zip(FormatTests.names, lines) {
                    let format = name.split(separator: ".").last.map(String.init) ?? ""
                    for (variant, suffix) in [
                        ("web", "jpg"), ("exact", "png"), ("small", "webp"), ("original", format),
                    ] {
                        let path = try await workspace.run("get", line, "--variant", variant)
                        #expect(
                            path.status == 0 && path.output.hasSuffix(".\(suffix)\n"), "\(path)")
                    }
                }
                // Animations are refused on demand.
                let refusing = try await workspace.finish(
                    workspace.prefetchCommand(
                        lines, ["--animated", "refuse", "--cache-dir", "other"]
                    ).run(),
                    entries: lines.count)
                let entries = refusing.report.entries.sorted { $0.line < $1.line }
                for (name, entry) in zip(FormatTests.names, entries) {
                    let isRefused = FormatTests.isAnimation(name)
                    #expect(
                        entry.verdict == (isRefused ? "failed/unsupported-image" : "downloaded"),
                        "\(name): \(entry.message ?? "")")
                }
            }
        }
    }

    /// A variant in a format without frames says so.
    @Test func reportSaysHowManyFramesAreLost() async throws {
        try await withOrigin { origin in
            try FormatTests.serve(origin)
            let lines = ["animation.gif", "animation.webp"].map { origin.url("/\($0)") }
            let options = ["--variant", "s=8x8,jpeg", "--variant", "t=8x8"]
            try await withWorkspace { workspace in
                let run = try await workspace.prefetch(lines, options)
                for entry in run.report.entries {
                    let message = entry.message ?? ""
                    #expect(
                        message.wholeMatch(of: /variant s: frames: 1 of [2-9]/) != nil, "\(message)"
                    )
                }
                for line in lines {
                    let path = try await workspace.run("get", line, "--variant", "t")
                    let format = line.split(separator: ".").last ?? ""
                    #expect(path.output.hasSuffix(".\(format)\n"), "\(path)")
                }
            }
        }
    }

    /// A line decides for its entry, against the run's flag.
    @Test(arguments: ["keep", "first"])
    func aLineSaysWhatBecomesOfAnimations(ofTheRun: String) async throws {
        try await withOrigin { origin in
            var (lines, verdicts, suffixes): ([String], [String], [String?]) = ([], [], [])
            for name in ["animation.gif", "animation.webp"] {
                let body = try FormatTests.file(name)
                let format = String(name.suffix(name.count - "animation.".count))
                for (value, suffix) in [
                    ("keep", format), ("first", format == "gif" ? "png" : format), ("refuse", nil),
                    ("last", nil),
                ] {
                    origin.serve("/\(value)/\(name)", .image(body))
                    lines.append(origin.url("/\(value)/\(name)") + " animated=\(value)")
                    suffixes.append(suffix)
                    verdicts.append(
                        suffix != nil
                            ? "downloaded"
                            : value == "refuse"
                                ? "failed/unsupported-image" : "failed/invalid-entry")
                }
            }
            let options = ["--animated", ofTheRun]
            try await withWorkspace { workspace in
                let run = try await workspace.prefetch(lines, options)
                let entries = run.report.entries.sorted { $0.line < $1.line }
                #expect(entries.map(\.verdict) == verdicts, "\(run.result)")
                let stored = entries.map { $0.path?.split(separator: ".").last.map(String.init) }
                #expect(stored == suffixes, "\(run.result)")
                #expect(
                    entries[3].message?.hasSuffix("takes keep, first or refuse, not 'last'")
                        == true, "\(run.result)")
                let requests = origin.requests.count
                let again = try await workspace.prefetch(lines, options)
                #expect(
                    again.report.entries.sorted { $0.line < $1.line }.map(\.verdict)
                        == verdicts.map {
                            switch $0 {
                            case "downloaded": "fresh"
                            case "failed/unsupported-image": "blacklisted"
                            default: $0
                            }
                        }, "\(again.result)")
                #expect(origin.requests.count == requests)
            }
        }
    }

    /// The row records another `Accept`, which required less.
    @Test func whatWasSelectedByAnotherAcceptStaysFresh() async throws {
        try await withOrigin { origin in
            let headers = [("Vary", "Accept"), ("Cache-Control", "max-age=600")]
            origin.serve("/a.png", Response(headers: headers, body: Fixtures.png(seed: 1)))
            try await withWorkspace { workspace in
                let first = try await workspace.prefetch([origin.url("/a.png")])
                #expect(first.report.verdicts == ["downloaded"], "\(first.result)")
                let accept = origin.requests.first?.header("Accept") ?? ""
                for type in ["image/jpeg", "image/png", "image/webp", "image/avif", "image/gif"] {
                    #expect(accept.contains(type), "\(accept)")
                }
                let noted = try await workspace.query("SELECT vary FROM resource")
                #expect(
                    noted.first?.first == "accept: image/jpeg,image/png,image/*;q=0.5,*/*;q=0.1")
                let second = try await workspace.prefetch([origin.url("/a.png")])
                #expect(second.report.verdicts == ["fresh"], "\(second.result)")
            }
        }
    }

    /// dav1d reports damaged data on standard error unless it is silenced, which `avifdec` does
    /// not do.
    @Test func damagedAVIFIsReportedByTheCommandAlone() async throws {
        try await withOrigin { origin in
            let body = try FormatTests.file("broken-data.avif")
            origin.serve("/a.avif", .image(body))
            try await withWorkspace { workspace in
                try workspace.write(body, to: "a.avif")
                let peer = try await Command(
                    executable: "/usr/bin/avifdec",
                    arguments: ["--codec", "dav1d", "a.avif", "a.png"], environment: [:],
                    folder: workspace.folder
                ).run()
                let complaint = "Error parsing OBU data"
                #expect(peer.error.contains(complaint), "\(peer)")
                let run = try await workspace.prefetch([origin.url("/a.avif")])
                #expect(run.report.verdicts == ["failed/corrupt-image"], "\(run.result)")
                #expect(!run.result.error.contains(complaint), "\(run.result)")
            }
        }
    }
}
