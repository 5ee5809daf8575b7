import Foundation
import TestSupport
import Testing

/// `run --html`, `report` and `gallery`.
@Suite(.timeLimit(.minutes(15)))
struct PageTests {
    private func text(_ workspace: Workspace, _ name: String) throws -> String {
        try String(contentsOfFile: "\(workspace.folder)/\(name)", encoding: .utf8)
    }

    private func count(_ part: String, in text: String) -> Int { text.ranges(of: part).count }

    @Test func runWritesItsPage() async throws {
        try await withOrigin { origin in
            let urls = origin.serveImages(3)
            origin.serve("/gone", .notFound)
            try await withWorkspace(without: .retries) { workspace in
                let lines = urls + [origin.url("/gone?sig=HUSH"), "<script>\u{202E}"]
                let manifest = try workspace.manifest(lines, name: "images.txt")
                let first = try await workspace.run(
                    manifest, "--html", "run.html", "--report", "run.jsonl")
                #expect(first.status == 1, "\(first)")
                #expect(try await workspace.pageComplaints("run.html") == "")
                let page = try text(workspace, "run.html")
                #expect(page.contains("3 of 5 entries are warm; 2 failed"), "\(page)")
                #expect(page.contains("no previous run is known"))
                #expect(count("<img ", in: page) == 3)
                #expect(count("image/jpeg", in: page) == 3, "thumbnails, and no previews")
                #expect(!page.contains("HUSH") && !page.contains("<script>"))

                let second = try await workspace.run(manifest, "--html", "run.html")
                #expect(second.status == 1, "\(second)")
                #expect(try await workspace.pageComplaints("run.html") == "")
                let later = try text(workspace, "run.html")
                #expect(later.contains("the previous run began"))
                #expect(!later.contains("<img "), "nothing is new")

                // The report has the same page, with previews in place of other caches' images.
                let made = try await workspace.run(
                    "report", "run.jsonl", "-o", "report.html", "--cache-dir", "cache")
                #expect(made.status == 0 && made.output.isEmpty, "\(made)")
                #expect(try await workspace.pageComplaints("report.html") == "")
                let report = try text(workspace, "report.html")
                #expect(report.contains("3 of 5 entries are warm; 2 failed"))
                #expect(count("image/jpeg", in: report) == 3)
            }
        }
    }

    /// Each remedy that lists entries prints exactly its row's.
    @Test func remediesPrintTheEntriesOfTheirRows() async throws {
        try await withOrigin { origin in
            let images = origin.serveImages(28)
            let counts = ["404": 3, "410": 2, "403": 2, "500": 1, "503": 1, "page": 2]
            origin.serve("/old", .notFound)
            var urls: [String] = []
            for (kind, count) in counts {
                for number in 0..<count {
                    let path = "/\(kind)/\(number)"
                    urls.append(origin.url(path))
                    origin.serve(
                        path,
                        Int(kind).map { Response($0, body: [], type: "text/plain") }
                            ?? .text("<html></html>"))
                }
            }
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                // A failure of an earlier run is not one of this run.
                _ = try await workspace.prefetch([origin.url("/old")])
                let second = Int(Date.now.timeIntervalSince1970)
                try await eventually("the next second") {
                    Int(Date.now.timeIntervalSince1970) > second
                }
                let run = try await workspace.prefetch(images + urls, "--html", "run.html")
                #expect(run.summary["failed"] == urls.count, "\(run.result)")
                #expect(!run.result.error.contains("refuses this pace"), "\(run.result)")
                #expect(try await workspace.pageComplaints("run.html") == "")
                let page = try text(workspace, "run.html")
                #expect(!page.contains("refuses this pace"))
                let remedy =
                    #/<th scope="row"[^>]*>(\d+)</th>.*?<code>(prefetch failed [^<]*)</code>/#
                let rows = page.matches(of: remedy)
                #expect(rows.count == counts.count, "\(rows.map(\.output.2))")
                for row in rows {
                    var command = workspace.command(["-c", String(row.output.2)])
                    command.executable = "/bin/sh"
                    command.environment["PATH"] = "\(workspace.folder)/bin:/usr/bin:/bin"
                    try FileManager.default.createDirectory(
                        atPath: "\(workspace.folder)/bin", withIntermediateDirectories: true)
                    try? FileManager.default.createSymbolicLink(
                        atPath: "\(workspace.folder)/bin/prefetch",
                        withDestinationPath: URL(filePath: Workspace.binary).path)
                    let result = try await command.run()
                    #expect(result.outputLines.count == Int(row.output.1), "\(result)")
                    let kinds = result.outputLines.compactMap {
                        $0.firstMatch(of: /127\.0\.0\.1:\d+\/(\w+)/)?.output.1
                    }
                    #expect(Set(kinds).count == 1, "\(result)")
                    let kind = String(kinds.first ?? "")
                    #expect(kinds.count == counts[kind], "\(result)")
                }
                let wrong = try await workspace.run("failed", "list", "--status", "40")
                #expect(wrong.status == 64 && wrong.error.contains("--status takes"), "\(wrong)")
            }
        }
    }

    /// The old image is shown with the new one, although its file is removed.
    @Test func changedImagesAreShownInPairs() async throws {
        try await withOrigin { origin in
            origin.serve(
                "/a.jpg",
                .picture(
                    try Fixtures.file("baseline.jpg"), ("Cache-Control", "max-age=0"),
                    ("ETag", "\"1\"")),
                .picture(try Fixtures.file("progressive.jpg"), ("ETag", "\"2\"")))
            try await withWorkspace { workspace in
                let manifest = try workspace.manifest([origin.url("/a.jpg")])
                _ = try await workspace.run(manifest)
                let second = try await workspace.run(
                    manifest, "--html", "run.html", "--report", "run.jsonl")
                #expect(second.status == 0, "\(second)")
                let page = try text(workspace, "run.html")
                #expect(page.contains(">1 changed<"))
                #expect(count("image/jpeg", in: page) == 2 && !page.contains("blurred"))
                #expect(page.contains("alt=\"Before, from "))
                // Later the old one is a preview, and without the cache both are.
                for (directory, previews) in [("cache", 1), ("other", 2)] {
                    if directory == "other" {
                        _ = try await workspace.run(
                            "run", "--allow-empty", try workspace.manifest([], name: "none.txt"),
                            "--cache-dir", directory)
                    }
                    let made = try await workspace.run(
                        "report", "run.jsonl", "-o", "report.html", "--cache-dir", directory)
                    #expect(made.status == 0, "\(made)")
                    let report = try text(workspace, "report.html")
                    #expect(count("a blurred preview", in: report) == previews)
                    #expect(count("<img ", in: report) == 2)
                }
            }
        }
    }

    @Test func reportsAreOrderedAndMayHaveAnyNumbers() async throws {
        let summary = { (time: String, entries: Int) in
            """
            {"type":"summary","schema_version":3,"entries":\(entries),"outcomes":\
            {"fresh":\(entries)},"started_at":"\(time)","elapsed_ms":5.0,"exit_status":0}

            """
        }
        try await withWorkspace { workspace in
            try workspace.write(Array(summary("2026-11-02T00:00:00Z", 7).utf8), to: "new.jsonl")
            try workspace.write(Array(summary("2026-11-01T00:00:00Z", 5).utf8), to: "old.jsonl")
            for reports in [["new.jsonl", "old.jsonl"], ["old.jsonl", "new.jsonl"]] {
                let made = try await workspace.command(["report"] + reports).run()
                #expect(made.status == 0 && made.error.isEmpty, "\(made)")
                #expect(made.output.contains("All 7 entries are warm"), "\(made)")
                #expect(made.output.contains("the previous run began 2026-11-01 00:00 UTC"))
                #expect(try await PageJudge.complaints(made.outputBytes) == "")
            }

            // Sums of numbers that no run has.
            for number in [
                "9223372036854775807", "-9223372036854775808", "1e300", "99999999999999999999",
            ] {
                let fields = ["attempts", "bytes_received", "bytes_stored", "width", "ended_ms"]
                    .map { "\"\($0)\":\(number)" }.joined(separator: ",")
                let line =
                    #"{"type":"result","line":1,"url":"http://h.example/a","outcome":"downloaded","#
                    + #""format":"png","height":1,"sha256":"\#(String(repeating: "a", count: 64))","#
                    + fields + "}\n"
                let summary =
                    #"{"type":"summary","entries":\#(number),"outcomes":{"failed":\#(number),"#
                    + #""downloaded":\#(number)},"reasons":{"http-status":\#(number)}}"# + "\n"
                try workspace.write(
                    Array((String(repeating: line, count: 3) + summary).utf8), to: "huge.jsonl")
                let page = "huge\(number).html"
                let made = try await workspace.run("report", "huge.jsonl", "-o", page)
                #expect(made.status == 0 || made.status == 1, "\(made)")
                #expect(try await workspace.pageComplaints(page) == "", "\(number)")
            }
        }
    }

    @Test func damagedReportsAreNamedAndShown() async throws {
        try await withOrigin { origin in
            let urls = origin.serveImages(2)
            try await withWorkspace { workspace in
                let run = try await workspace.prefetch(urls)
                #expect(run.result.status == 0)
                let report = try text(workspace, "report-1.jsonl")
                try workspace.write(
                    Array(report.utf8.prefix(report.utf8.count / 2)), to: "cut.jsonl")
                let cut = try await workspace.run("report", "cut.jsonl", "-o", "cut.html")
                #expect(cut.status == 1, "\(cut)")
                #expect(
                    cut.errorLines == [
                        "prefetch: cut.jsonl: line 2: cut off",
                        "hint: the page is about the other lines",
                    ], "\(cut)")
                #expect(try await workspace.pageComplaints("cut.html") == "")
                let page = try text(workspace, "cut.html")
                #expect(page.contains("The run was killed, or still runs: 1 of 1 entry is warm"))
                #expect(page.contains("1 line of the report could not be read"))

                let other = try await workspace.run("report", try workspace.manifest(urls))
                #expect(other.status == 2, "\(other)")
                #expect(
                    other.errorLines.last == "hint: `prefetch run --report FILE` writes reports")
                // Only a report replaces a page, and no page replaces its report.
                for text in ["", "# A document\n"] {
                    try workspace.write(Array(text.utf8), to: "none.jsonl")
                    try workspace.write(Array("old".utf8), to: "page.html")
                    let made = try await workspace.run("report", "none.jsonl", "-o", "page.html")
                    #expect(
                        made.status == 2 && made.error.contains("no line of a report"), "\(made)")
                    #expect(try self.text(workspace, "page.html") == "old")
                }
                let same = try await workspace.run("report", "cut.jsonl", "-o", "cut.jsonl")
                #expect(same.status == 64 && same.error.contains("--output"), "\(same)")
                let missing = try await workspace.run("report", "missing.jsonl")
                #expect(missing.status == 2, "\(missing)")
                #expect(missing.error.contains("missing.jsonl: cannot read"), "\(missing)")
            }
        }
    }

    // MARK: Gallery

    private func files(_ workspace: Workspace, _ folder: String) throws -> Set<String> {
        Set(try FileManager.default.contentsOfDirectory(atPath: "\(workspace.folder)/\(folder)"))
    }

    @Test func galleryHasEveryImage() async throws {
        try await withOrigin { origin in
            let urls = origin.serveImages(205)
            try await withWorkspace { workspace in
                let run = try await workspace.prefetch(
                    urls, "--variant", "thumb=webp,16x16", "--ttl", "9d")
                #expect(run.result.status == 0, "\(run.result)")
                let made = try await workspace.run("gallery", "-o", "g")
                #expect(made.status == 0, "\(made)")
                #expect(made.error == "prefetch: 205 images on 2 pages: g/index.html\n")
                let pages = try ["index.html", "page-2.html"].map { try text(workspace, "g/\($0)") }
                for (page, images) in zip(pages, [200, 5]) {
                    #expect(try await PageJudge.complaints(Array(page.utf8)) == "")
                    #expect(count("<li>", in: page) == images)
                    #expect(count("data:image/png", in: page) == images, "ThumbHashes")
                    #expect(count("src=\"thumbnails/", in: page) == images)
                    #expect(count("2 variants", in: page) == images)
                    #expect(count("fresh, until ", in: page) == images)
                }
                let thumbnails = try files(workspace, "g/thumbnails")
                for name in pages.joined().matches(of: /thumbnails\/([0-9a-f]+\.jpg)/) {
                    #expect(thumbnails.contains(String(name.output.1)))
                }
                #expect(try await workspace.run("gallery", "-o", "g", "-q").error.isEmpty)
                #expect(try files(workspace, "g/thumbnails") == thumbnails)

                // Unneeded files are removed, and other files stay.
                let foreign = String(repeating: "ab", count: 32) + ".png"
                for name in ["page-3.html", "page-02.html", "notes.txt", "thumbnails/\(foreign)"] {
                    try workspace.write(Array("mine".utf8), to: "g/\(name)")
                }
                _ = try await workspace.run("remove", "--host", "127.0.0.1")
                let later = try await workspace.run("gallery", "-o", "g")
                #expect(later.error == "prefetch: 0 images on 1 page: g/index.html\n", "\(later)")
                #expect(
                    try files(workspace, "g") == [
                        "index.html", "page-3.html", "page-02.html", "notes.txt", "thumbnails",
                    ])
                #expect(try files(workspace, "g/thumbnails") == ["CACHEDIR.TAG", foreign])
            }
        }
    }

    @Test func galleryLeavesForeignFoldersAlone() async throws {
        try await withOrigin { origin in
            let urls = origin.serveImages(1)
            try await withWorkspace { workspace in
                _ = try await workspace.prefetch(urls)
                let folders: [(String, String)] = [
                    ("a/index.html", "a/index.html"), ("b/thumbnails/x.jpg", "b/thumbnails"),
                ]
                for (file, subject) in folders {
                    let folder = "\(workspace.folder)/\(file)".split(separator: "/").dropLast()
                    try FileManager.default.createDirectory(
                        atPath: "/" + folder.joined(separator: "/"),
                        withIntermediateDirectories: true)
                    try workspace.write(Array("mine".utf8), to: file)
                    let made = try await workspace.run("gallery", "-o", String(file.prefix(1)))
                    #expect(made.status == 2, "\(made)")
                    #expect(
                        made.error.contains("\(subject): not made by `prefetch gallery`"), "\(made)"
                    )
                    #expect(try text(workspace, file) == "mine")
                }
                let inside = try await workspace.run("gallery", "-o", "cache")
                #expect(inside.status == 64, "\(inside)")
                let missing = try await workspace.run("gallery", "-o", "none/none")
                #expect(missing.status == 2 && missing.error.contains("hint: "), "\(missing)")
            }
        }
    }
}
