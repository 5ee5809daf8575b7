import Foundation
import TestSupport
import Testing

/// `prefetch export` writes cached images under the names of a layout.
@Suite(.timeLimit(.minutes(15)))
struct ExportTests {
    /// Runs the body in a workspace with a cache that has an image for each of these URLs.
    private func withImages(
        _ urls: [String], _ body: (Workspace) async throws -> Void
    ) async throws {
        try await withWorkspace { workspace in
            for (index, url) in urls.enumerated() {
                try workspace.write(Fixtures.png(seed: index), to: "image.png")
                let put = try await workspace.run(
                    "put", url, "image.png", "-q", "--attr", "class=c\(index % 2)")
                #expect(put.status == 0, "\(put)")
            }
            try workspace.manifest(urls, name: "list.txt")
            try await body(workspace)
        }
    }

    private static let urls = [
        "http://h.example/a/b.png", "http://h.example/a", "http://h.example/c%20d.png?x=1#f",
    ]

    /// The files below a folder with their bytes, without the export's own.
    private func files(_ folder: String, in workspace: Workspace) throws -> [String: Data] {
        let root = workspace.folder + "/" + folder
        var files: [String: Data] = [:]
        for path in try FileManager.default.subpathsOfDirectory(atPath: root) {
            guard path != ".prefetch-export" else { continue }
            let attributes = try FileManager.default.attributesOfItem(atPath: "\(root)/\(path)")
            guard attributes[.type] as? FileAttributeType == .typeRegular else { continue }
            files[path] = try Data(contentsOf: URL(filePath: "\(root)/\(path)"))
        }
        return files
    }

    private func stored(_ url: String, in workspace: Workspace) async throws -> Data {
        let get = try await workspace.run("get", url)
        return try Data(
            contentsOf: URL(filePath: get.output.trimmingCharacters(in: .newlines)))
    }

    @Test func exportsTheListsImagesWithTheirBytes() async throws {
        try await withImages(ExportTests.urls) { workspace in
            let export = try await workspace.run(
                "export", "out", "list.txt", "--layout", "mirror", "--map", "map.tsv",
                "--map-json", "map.jsonl", "--json")
            #expect(export.status == 0, "\(export)")
            let files = try files("out", in: workspace)
            #expect(
                files.keys.sorted() == [
                    "h.example/a/b.png", "h.example/a~file", "h.example/c d.png?x=1",
                ])
            #expect(
                files["h.example/a~file"] == (try await stored(ExportTests.urls[1], in: workspace)))
            let lines = try String(contentsOfFile: workspace.folder + "/map.tsv", encoding: .utf8)
                .split(separator: "\n").map { $0.split(separator: "\t").map(String.init) }
            #expect(lines[0] == ["url", "variant", "path", "width", "height", "sha256"])
            #expect(lines.dropFirst().map { $0[0] } == ExportTests.urls)
            #expect(lines.dropFirst().allSatisfy { files[$0[2]] != nil && $0[5].count == 64 })
            let objects = try String(
                contentsOfFile: workspace.folder + "/map.jsonl", encoding: .utf8
            ).split(separator: "\n").map {
                try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any]
            }
            #expect(objects.map { $0?["path"] as? String } == lines.dropFirst().map { $0[2] })
            let summary =
                try JSONSerialization.jsonObject(with: Data(export.output.utf8)) as? [String: Any]
            #expect(summary?["files_written"] as? Int == 3)
            #expect(summary?["changed"] as? Bool == true)
        }
    }

    @Test(arguments: [
        "mirror", "sdwebimage", "kingfisher7", "kingfisher8", "nuke", "coil3", "glide", "flutter",
        "workbox", "webdataset", "imagefolder",
    ])
    func secondExportChangesNothing(_ layout: String) async throws {
        try await withImages(ExportTests.urls) { workspace in
            for (number, text) in ["written", "3 images: unchanged"].enumerated() {
                let export = try await workspace.run("export", "out", "--layout", layout)
                #expect(export.status == 0, "\(export)")
                #expect(export.error.contains(text), "\(number): \(export)")
            }
            // Times and inodes, too.
            func listing() async throws -> String {
                var command = workspace.command([
                    "-c", "find out -printf '%p %i %T@ %s\\n' | sort",
                ])
                command.executable = "/bin/sh"
                return try await command.run().output
            }
            let before = try await listing()
            let update = try await workspace.run(
                "export", "out", "--layout", layout, "--update", "--delete")
            #expect(update.error.contains("3 images: unchanged"), "\(update)")
            let after = try await listing()
            // The folder of `--update`'s new files was in it for a moment.
            #expect(
                before.split(separator: "\n").dropFirst()
                    == after.split(separator: "\n").dropFirst())
        }
    }

    @Test(arguments: [[], ["--update", "--delete"]]) func followsTheList(
        _ flags: [String]
    ) async throws {
        try await withImages(ExportTests.urls) { workspace in
            func export(_ lines: [String]) async throws -> CommandResult {
                try workspace.manifest(lines, name: "list.txt")
                return try await workspace.command(
                    ["export", "out", "list.txt", "--layout", "mirror"] + flags
                ).run()
            }
            #expect(try await export(ExportTests.urls).status == 0)
            let shorter = try await export([ExportTests.urls[0]])
            #expect(shorter.error.contains("1 unchanged, 2 removed"), "\(shorter)")
            #expect(try files("out", in: workspace).keys.sorted() == ["h.example/a/b.png"])
            let back = try await export(ExportTests.urls)
            #expect(back.error.contains("2 files written"), "\(back)")
            #expect(try files("out", in: workspace).count == 3)

            // `--update` alone keeps earlier files, which are still known as exported.
            for url in [ExportTests.urls[0], ExportTests.urls[2]] {
                try workspace.manifest([url], name: "list.txt")
                let export = try await workspace.run(
                    "export", "kept", "list.txt", "--layout", "mirror", "--update")
                #expect(export.status == 0, "\(export)")
            }
            #expect(try self.files("kept", in: workspace).count == 2)
            let last = try await workspace.run(
                "export", "kept", "list.txt", "--layout", "mirror", "--update", "--delete")
            #expect(last.error.contains("1 removed"), "\(last)")
        }
    }

    @Test func neverReplacesForeignFiles() async throws {
        try await withImages(ExportTests.urls) { workspace in
            let folder = workspace.folder + "/out/h.example"
            try FileManager.default.createDirectory(
                atPath: folder, withIntermediateDirectories: true)
            try workspace.write([1], to: "out/h.example/c d.png?x=1")
            let refused = try await workspace.run("export", "out", "--layout", "mirror")
            #expect(refused.status == 2, "\(refused)")
            #expect(
                refused.error.contains(
                    "has files that no export wrote, like h.example/c d.png?x=1"),
                "\(refused)")
            let update = try await workspace.run(
                "export", "out", "--layout", "mirror", "--update", "--delete")
            #expect(update.status == 1, "\(update)")
            #expect(update.error.contains("a file that no export wrote has its name"), "\(update)")
            let files = try files("out", in: workspace)
            #expect(files.count == 3)
            #expect(files["h.example/c d.png?x=1"] == Data([1]))

            // A link does not lead out of the folder.
            let manager = FileManager.default
            for name in ["linked", "outside"] {
                try manager.createDirectory(
                    atPath: workspace.folder + "/" + name, withIntermediateDirectories: true)
            }
            try manager.createSymbolicLink(
                atPath: workspace.folder + "/linked/h.example",
                withDestinationPath: workspace.folder + "/outside")
            let export = try await workspace.run(
                "export", "linked", "--layout", "mirror", "--update")
            #expect(export.status == 2, "\(export)")
            #expect(try manager.contentsOfDirectory(atPath: workspace.folder + "/outside").isEmpty)
        }
    }

    /// Missing and damaged images are named, and do not keep the others.
    @Test func saysWhatIsMissing() async throws {
        try await withImages(ExportTests.urls) { workspace in
            try workspace.manifest(
                ExportTests.urls + ["http://h.example/gone.png", "ftp://x/"], name: "list.txt")
            let get = try await workspace.run("get", ExportTests.urls[1])
            let path = get.output.trimmingCharacters(in: .newlines)
            let whole = try Data(contentsOf: URL(filePath: path))
            var bytes = whole
            bytes[bytes.count - 5] ^= 1
            try bytes.write(to: URL(filePath: path))
            defer { try? whole.write(to: URL(filePath: path)) }
            let export = try await workspace.run(
                "export", "out", "list.txt", "--layout", "mirror")
            #expect(export.status == 1, "\(export)")
            for text in [
                "http://h.example/a: not exported: its content file is missing or damaged",
                "list.txt:4: http://h.example/gone.png: not exported: not in the cache",
                "list.txt:5: ", "not exported: 1 missing, 1 invalid, 1 damaged", "`prefetch run`",
            ] {
                #expect(export.error.contains(text), "\(text): \(export)")
            }
            #expect(try files("out", in: workspace).count == 2)
        }
    }

    /// An image without any variant is missing once.
    @Test func missingImageIsReportedOnce() async throws {
        try await withOrigin { origin in
            let lines = origin.serveImages(1) + [origin.url("/gone.png")]
            try await withWorkspace { workspace in
                _ = try await workspace.prefetch(
                    lines, "--variant", "s=2x2,png", "--variant", "l=4x4,png")
                try workspace.manifest(lines, name: "list.txt")
                let export = try await workspace.run(
                    "export", "out", "list.txt", "--variant", "s", "--variant", "l", "--name",
                    "{n}-{variant}.{ext}")
                #expect(export.status == 1, "\(export)")
                #expect(export.error.contains("not exported: 1 missing\n"), "\(export)")
                #expect(export.error.components(separatedBy: "gone.png").count == 2, "\(export)")
            }
        }
    }

    @Test func describesImagesForPages() async throws {
        try await withOrigin { origin in
            let lines = origin.serveImages(2)
            try await withWorkspace { workspace in
                let list =
                    "url,alt\n" + lines.map { "\($0)?sig=SECRET,\"a <b> & \"\"c\"\"\"\n" }.joined()
                try workspace.write(Array(list.utf8), to: "list.csv")
                let run = try await workspace.run(
                    "run", "list.csv", "--variant", "s=2x2+,webp", "--variant", "l=4x4+,webp",
                    "--variant", "f=4x4+,png")
                #expect(run.status == 0, "\(run)")
                try FileManager.default.createDirectory(
                    atPath: workspace.folder + "/site", withIntermediateDirectories: true)
                let export = try await workspace.run(
                    "export", "site/img", "list.csv", "--variant", "s", "--variant", "l",
                    "--variant", "f", "--name", "{n}, {variant}.{ext}", "--map-json", "map.jsonl",
                    "--snippet", "site/images.html", "--caption", "alt")
                #expect(export.status == 0, "\(export)")
                let page = try String(
                    contentsOfFile: workspace.folder + "/site/images.html", encoding: .utf8)
                let elements = page.split(separator: "\n")
                #expect(elements.count == 2 && !page.contains("SECRET"), "\(page)")
                for text in [
                    #"<source type="image/webp" srcset="img/1%2C%20s.webp 2w, img/1%2C%20l.webp 4w""#,
                    #"<img src="img/1%2C%20f.png" width="4" height="4""#,
                    #"alt="a &lt;b&gt; &amp; &quot;c&quot;""#, #"style="background-color:#"#,
                    #"data-thumbhash=""#,
                ] {
                    #expect(elements.first?.contains(text) == true, "\(text): \(page)")
                }
                let map = try String(
                    contentsOfFile: workspace.folder + "/map.jsonl", encoding: .utf8)
                let objects = try map.split(separator: "\n").map {
                    try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any]
                }
                #expect(objects.count == 6)
                for object in objects {
                    #expect(object?["caption"] as? String == #"a <b> & "c""#)
                    #expect((object?["thumbhash"] as? String)?.isEmpty == false)
                    #expect((object?["color"] as? String)?.hasPrefix("#") == true)
                    #expect(["png", "webp"].contains(object?["format"] as? String))
                }
                let refused = try await workspace.run(
                    "export", "k", "--layout", "nuke", "--snippet", "s.html")
                #expect(refused.status == 64, "\(refused)")
            }
        }
    }

    /// Kingfisher takes the time of a file for its expiry, Flutter's manager the field `touched`.
    @Test(arguments: ["kingfisher7", "kingfisher8", "sdwebimage", "flutter"])
    func touchRenewsTheTimesOfACopy(_ layout: String) async throws {
        try await withImages(ExportTests.urls) { workspace in
            let export = try await workspace.run("export", "seed/out", "--layout", layout)
            #expect(export.status == 0, "\(export)")
            var shell = workspace.command([
                "-euc",
                """
                cp -r seed copy && find copy -type f -exec touch -d 2020-01-01 {} +
                if [ -f copy/out/libCachedImageData.db ]; then
                    python3 -c 'import sqlite3; d = sqlite3.connect("copy/out/libCachedImageData.db")
                d.execute("UPDATE cacheObject SET touched = 5"); d.commit()'
                fi
                """,
            ])
            shell.executable = "/bin/sh"
            let copied = try await shell.run()
            #expect(copied.status == 0, "\(copied)")
            let touch = try await workspace.run("export", "--touch", "copy/out")
            #expect(touch.status == 0, "\(touch)")
            #expect(touch.error.contains(" renewed"), "\(touch)")
            let now = Date()
            for (name, _) in try files("copy/out", in: workspace) {
                let attributes = try FileManager.default.attributesOfItem(
                    atPath: "\(workspace.folder)/copy/out/\(name)")
                let time = try #require(attributes[.modificationDate] as? Date)
                if layout.hasPrefix("kingfisher") {
                    #expect(time > now.addingTimeInterval(6 * 86_400), "\(name): \(time)")
                } else if layout == "sdwebimage" {
                    #expect(time > now.addingTimeInterval(-60), "\(name): \(time)")
                }
            }
            if layout == "flutter" {
                shell.arguments = [
                    "-euc",
                    """
                    python3 -c 'import json, sqlite3, time
                    rows = sqlite3.connect("copy/out/libCachedImageData.db").execute("SELECT key, touched FROM cacheObject ORDER BY _id").fetchall()
                    print(len(rows), all(t > (time.time() + 29 * 86400) * 1000 for _, t in rows),
                        rows == [(o["key"], o["touched"]) for o in json.load(open("copy/out/libCachedImageData.json"))])'
                    """,
                ]
                #expect(try await shell.run().output == "3 True True\n")
            }
            // The copy is still that of the export.
            let again = try await workspace.run("export", "copy/out", "--layout", layout)
            #expect(again.error.contains("3 images: unchanged"), "\(again)")
        }
    }

    @Test func touchNeedsTheStateOfAnExport() async throws {
        try await withImages([ExportTests.urls[0]]) { workspace in
            _ = try await workspace.run("export", "m", "--layout", "mirror")
            _ = try await workspace.run("export", "k", "--layout", "kingfisher8")
            try FileManager.default.createDirectory(
                atPath: workspace.folder + "/none", withIntermediateDirectories: true)
            let key = try #require(try files("k", in: workspace).keys.first)
            try FileManager.default.removeItem(atPath: "\(workspace.folder)/k/\(key)")
            for (arguments, status, text) in [
                (["--touch", "m"], 64, "the layout mirror has no times to renew"),
                (["--touch", "none"], 2, ".prefetch-export is missing"),
                (["--touch", "gone"], 2, "no such folder"),
                (["--touch", "k"], 1, "1 file missing or changed, like \(key)"),
                (["--touch", "k", "list.txt"], 64, "without lists and other flags"),
            ] as [([String], Int32, String)] {
                let touch = try await workspace.command(["export"] + arguments).run()
                #expect(touch.status == status && touch.error.contains(text), "\(touch)")
            }
        }
    }

    /// The shard has the other samples, and the next export completes it. A list from a pipe cannot
    /// be read again after the damage is found.
    @Test(arguments: [
        ("list.txt", "list.txt:2: http://h.example/a: not exported", 2),
        ("-", "00000.tar/000000001.png: not exported", 1),
    ])
    func damagedSampleIsLeftOut(_ list: String, _ message: String, _ written: Int) async throws {
        try await withImages(ExportTests.urls) { workspace in
            let get = try await workspace.run("get", ExportTests.urls[1])
            let path = get.output.trimmingCharacters(in: .newlines)
            let whole = try Data(contentsOf: URL(filePath: path))
            try Data(whole.dropLast()).write(to: URL(filePath: path))
            func export() async throws -> CommandResult {
                var command = workspace.command([
                    "export", "out", list, "--layout", "webdataset", "--json",
                ])
                command.input = .bytes(Array((ExportTests.urls.joined(separator: "\n")).utf8))
                return try await command.run()
            }
            let incomplete = try await export()
            try whole.write(to: URL(filePath: path))
            #expect(incomplete.status == 1, "\(incomplete)")
            #expect(incomplete.error.contains(message), "\(incomplete)")
            #expect(incomplete.output.contains(#""images":2"#), "\(incomplete)")
            var tar = workspace.command(["tf", "out/00000.tar"])
            tar.executable = "/bin/tar"
            #expect(
                try await tar.run().output.split(separator: "\n") == [
                    "000000000.png", "000000000.json", "000000002.png", "000000002.json",
                ])
            let complete = try await export()
            #expect(complete.status == 0, "\(complete)")
            #expect(
                complete.output.contains(#""files_written":\#(written)"#), "\(complete)")
            #expect(try await tar.run().output.split(separator: "\n").count == 6)
        }
    }

    @Test func exportsVariantsByPattern() async throws {
        try await withOrigin { origin in
            let lines = origin.serveImages(2)
            try await withWorkspace { workspace in
                let run = try await workspace.prefetch(
                    lines, "--variant", "s=2x2,png", "--variant", "l=4x4,png")
                #expect(run.result.status == 0, "\(run.result)")
                try workspace.manifest(lines, name: "list.txt")
                let export = try await workspace.run(
                    "export", "out", "list.txt", "--variant", "s", "--variant", "l", "--name",
                    "{n}-{variant}-{width}w.{ext}")
                #expect(export.status == 0, "\(export)")
                #expect(
                    try files("out", in: workspace).keys.sorted() == [
                        "1-l-4w.png", "1-s-2w.png", "2-l-4w.png", "2-s-2w.png",
                    ])
                let same = try await workspace.run(
                    "export", "out", "list.txt", "--variant", "s", "--variant", "l", "--name",
                    "{n}.{ext}")
                #expect(same.status == 1, "\(same)")
                #expect(same.error.contains("1.png is the file of"), "\(same)")
                let unknown = try await workspace.run(
                    "export", "out", "--layout", "mirror", "--variant", "x")
                #expect(unknown.status == 64, "\(unknown)")
            }
        }
    }

    /// The folder of a shell is changed in place, with other files in it.
    @Test(arguments: [(".", "."), ("..", ".."), ("../../site", "../..//site")])
    func currentFolderIsNotReplaced(_ folder: String, _ spelling: String) async throws {
        try await withImages(ExportTests.urls) { workspace in
            var shell = workspace.command([
                "-euc",
                """
                mkdir -p site/sub; echo x >site/own; cd site
                [ "$1" = . ] || cd sub
                for list in list.txt one.txt; do
                    "$0" export "$1" "$3/$list" --layout mirror --cache-dir "$3/cache"
                    cat "$2/own"; find "$2" -type f ! -name own ! -name '.*' | wc -l
                done
                """, workspace.command([]).executable, folder, spelling,
                workspace.folder,
            ])
            try workspace.manifest(Array(ExportTests.urls.prefix(1)), name: "one.txt")
            shell.executable = "/bin/sh"
            let result = try await shell.run()
            #expect(result.status == 0, "\(result)")
            let lines = result.output.split(separator: "\n")
            try #require(lines.count == 4 && lines[0] == "x" && lines[2] == "x", "\(result)")
            #expect(lines[1] == "3" && lines[3] == "1", "\(result)")
        }
    }

    @Test func linksShareFilesAndModesDoNot() async throws {
        try await withImages(ExportTests.urls) { workspace in
            func number(_ path: String) throws -> UInt64? {
                try FileManager.default.attributesOfItem(atPath: path)[.systemFileNumber]
                    as? UInt64
            }
            let get = try await workspace.run("get", ExportTests.urls[0])
            let stored = get.output.trimmingCharacters(in: .newlines)
            let out = workspace.folder + "/out/h.example/a/b.png"
            let link = try await workspace.run("export", "out", "--layout", "mirror", "--link")
            #expect(link.status == 0, "\(link)")
            #expect(try number(out) == number(stored))
            #expect(
                link.error.contains("only their owner may read")
                    && link.error.contains("--mode 0644 makes copies"), "\(link)")
            let mode = try await workspace.run(
                "export", "out", "--layout", "mirror", "--link", "--mode", "0644")
            #expect(mode.status == 0, "\(mode)")
            #expect(try number(out) != number(stored))
            let attributes = try FileManager.default.attributesOfItem(atPath: out)
            #expect(attributes[.posixPermissions] as? Int == 0o644)
            let refused = try await workspace.run("export", "k", "--layout", "nuke", "--link")
            #expect(refused.status == 0, "\(refused)")
            let time = try await workspace.run(
                "export", "s", "--layout", "sdwebimage", "--link")
            #expect(time.status == 64, "\(time)")
        }
    }

    @Test(arguments: [
        (["out"], "--layout is missing"),
        (["out"], "hint: --layout is mirror, pattern, sdwebimage"),
        (["out", "--layuot", "mirror"], "Unknown option '--layuot'. Did you mean '--layout'?"),
        (["out", "--layout", "pattern"], "--layout pattern needs --name PATTERN"),
        (["out", "--layout", "nuke", "--name", "{n}"], "--name needs --layout pattern"),
        (["out", "--name", "{x}"], "--name '{x}': unknown field '{x}'"),
        (["out", "--layout", "mirror", "--delete"], "--delete needs --update"),
        (["out", "--layout", "mirror", "--identifier", "main=x"], "--identifier needs"),
        (["out", "--layout", "nuke", "--identifier", "web=x"], "--variant does not name it"),
        (["cache/x", "--layout", "mirror"], "would write into the cache directory"),
        ([".", "--layout", "mirror"], "the cache is in this folder"),
        (
            ["out", "--layout", "mirror", "--map", "out/map.tsv"],
            "cannot be in the exported folder"
        ),
        (["list.txt/out", "--layout", "mirror"], "Not a directory"),
        (
            ["out", "--layout", "webdataset", "--variant", "main", "--variant", "s"],
            "one --variant"
        ),
    ])
    func refusesMistakes(_ arguments: [String], _ message: String) async throws {
        try await withImages([ExportTests.urls[0]]) { workspace in
            let export = try await workspace.command(["export"] + arguments).run()
            #expect([2, 64].contains(export.status), "\(export)")
            #expect(export.error.contains(message), "\(export)")
            #expect(!FileManager.default.fileExists(atPath: workspace.folder + "/out"))
        }
    }

    /// Datasets are read by independent programs.
    @Test func otherProgramsReadDatasets() async throws {
        try await withImages(ExportTests.urls) { workspace in
            try workspace.write(
                Array(
                    ("url,caption\n"
                        + ExportTests.urls.map { "\($0),\"a, \(String($0.count))\"\n" }.joined())
                        .utf8), to: "list.csv")
            for _ in 0..<2 {
                try? FileManager.default.removeItem(atPath: workspace.folder + "/out")
                let export = try await workspace.run(
                    "export", "out", "list.csv", "--layout", "webdataset", "--shard-size", "2")
                #expect(export.status == 0, "\(export)")
                try? FileManager.default.copyItem(
                    atPath: workspace.folder + "/out", toPath: workspace.folder + "/first")
            }
            #expect(try files("out", in: workspace) == files("first", in: workspace))
            var tar = workspace.command(["tf", "out/00000.tar"])
            tar.executable = "/bin/tar"
            let names = try await tar.run()
            #expect(
                names.output.split(separator: "\n") == [
                    "000000000.png", "000000000.json", "000000000.txt", "000000001.png",
                    "000000001.json", "000000001.txt",
                ])
            tar.arguments = ["xOf", "out/00001.tar", "000010000.txt"]
            #expect(try await tar.run().output == "a, \(ExportTests.urls[2].count)")
            tar.arguments = ["xOf", "out/00001.tar", "000010000.png"]
            let image = try await stored(ExportTests.urls[2], in: workspace)
            #expect(try await tar.run().outputBytes.count == image.count)

            // Labels of folders
            for format in ["jsonl", "csv"] {
                let export = try await workspace.run(
                    "export", "labels-\(format)", "--layout", "imagefolder", "--metadata", format)
                #expect(export.status == 0, "\(export)")
                let files = try self.files("labels-\(format)", in: workspace)
                #expect(files.keys.count { $0.hasPrefix("train/c0/") } == 2)
                #expect(files.keys.count { $0.hasPrefix("train/c1/") } == 1)
                let metadata = String(
                    decoding: files["train/metadata.\(format)"] ?? Data(), as: UTF8.self)
                for name in files.keys where !name.hasPrefix("train/metadata") {
                    #expect(metadata.contains(name.dropFirst("train/".count)), "\(metadata)")
                }
            }

            // A database
            let database = try await workspace.run(
                "export", "flutter", "list.txt", "--layout", "flutter")
            #expect(database.status == 0, "\(database)")
            var python = workspace.command([
                "-c",
                """
                import sqlite3, os
                d = sqlite3.connect("flutter/libCachedImageData.db")
                print(d.execute("PRAGMA user_version").fetchone()[0], d.execute("PRAGMA integrity_check").fetchone()[0])
                for url, path, length in d.execute("SELECT url, relativePath, length FROM cacheObject WHERE key = url ORDER BY _id"):
                    print(url, os.path.getsize("flutter/libCachedImageData/" + path) == length)
                """,
            ])
            python.executable = "/usr/bin/python3"
            let result = try await python.run()
            #expect(
                result.output
                    == "3 ok\n" + ExportTests.urls.map { "\($0) True\n" }.joined(), "\(result)")
        }
    }

    /// The Parquet file that the Python package makes of a shard.
    @Test(arguments: [[], ["--update", "--delete"]])
    func keepsATableAsLongAsItsShard(_ flags: [String]) async throws {
        try await withImages(ExportTests.urls) { workspace in
            func export(_ lines: [String]) async throws -> CommandResult {
                try workspace.manifest(lines, name: "list.txt")
                return try await workspace.command(
                    ["export", "out", "list.txt", "--layout", "webdataset", "--shard-size", "1"]
                        + flags
                ).run()
            }
            #expect(try await export(ExportTests.urls).status == 0)
            let tables = ["00000.parquet", "00001.parquet", "00002.parquet"]
            for table in tables { try workspace.write(Array(table.utf8), to: "out/\(table)") }
            let same = try await export(ExportTests.urls)
            #expect(same.error.contains("3 images: unchanged"), "\(same)")
            // The second shard changes, the third is no longer one.
            let changed = try await export([ExportTests.urls[0], ExportTests.urls[2]])
            #expect(changed.status == 0, "\(changed)")
            #expect(
                try files("out", in: workspace).keys.sorted() == [
                    "00000.parquet", "00000.tar", "00000_stats.json", "00001.tar",
                    "00001_stats.json",
                ])
            try workspace.write([], to: "out/00007.parquet")
            // A file of others that a new shard's table would replace.
            try workspace.write([], to: "out/00002.parquet")
            let foreign = try await export(ExportTests.urls)
            #expect(foreign.status == (flags.isEmpty ? 2 : 0), "\(foreign)")
            #expect(
                FileManager.default.fileExists(atPath: workspace.folder + "/out/00007.parquet"))
            #expect(
                FileManager.default.fileExists(atPath: workspace.folder + "/out/00002.parquet"))
        }
    }
}
