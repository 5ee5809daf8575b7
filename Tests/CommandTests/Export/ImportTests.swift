import Foundation
import TestSupport
import Testing

/// `prefetch import` adopts files of earlier downloads.
@Suite(.timeLimit(.minutes(15)))
struct ImportTests {
    private static let urls = [
        "http://h.example/a/b.png", "http://h.example/a", "http://h.example/c%20d.png?x=1",
        "http://other.example/b.png#f",
    ]

    private func withFiles(_ body: (Workspace) async throws -> Void) async throws {
        try await withWorkspace(without: [.placeholders]) { workspace in
            for (index, url) in ImportTests.urls.enumerated() {
                try workspace.write(Fixtures.png(seed: index), to: "\(index).png")
                let put = try await workspace.run(
                    "put", url, "\(index).png", "-q", "--cache-dir", "first", "--encode",
                    "original")
                #expect(put.status == 0, "\(put)")
            }
            try workspace.manifest(ImportTests.urls, name: "list.txt")
            try await body(workspace)
        }
    }

    @Test(arguments: ["mirror", "sdwebimage", "webdataset"])
    func exportedImagesAreWarmAfterImport(_ layout: String) async throws {
        try await withFiles { workspace in
            let export = try await workspace.run(
                "export", "out", "list.txt", "--layout", layout, "--cache-dir", "first")
            #expect(export.status == 0, "\(export)")
            let imported = try await workspace.run(
                "import", "out", "list.txt", "--layout", layout, "--json")
            #expect(imported.status == 0, "\(imported)")
            #expect(imported.output.contains(#""imported":4,"kept":0,"#), "\(imported)")
            let offline = try await workspace.prefetch(ImportTests.urls, "--offline")
            #expect(offline.result.status == 0, "\(offline.result)")
            #expect(offline.summary.outcomes["fresh"] == 4)
            let again = try await workspace.run(
                "import", "out", "list.txt", "--layout", layout, "--json")
            #expect(again.output.contains(#""imported":0,"kept":4,"#), "\(again)")
            let verify = try await workspace.run("verify")
            #expect(verify.status == 0, "\(verify)")
        }
    }

    /// Samples have no signatures of URLs; entries that differ in these alone have none.
    @Test func signedImagesAreFoundInShards() async throws {
        try await withWorkspace(without: [.placeholders]) { workspace in
            let urls = ["/a?sig=HUSH1", "/b?sig=HUSH2&x=1", "/c?sig=HUSH3", "/c?sig=HUSH4"].map {
                "http://h.example\($0)"
            }
            try workspace.write(Fixtures.png(seed: 1), to: "1.png")
            for url in urls {
                let put = try await workspace.run("put", url, "1.png", "-q", "--cache-dir", "first")
                #expect(put.status == 0, "\(put)")
            }
            try workspace.manifest(urls, name: "list.txt")
            let export = try await workspace.run(
                "export", "out", "list.txt", "--layout", "webdataset", "--cache-dir", "first")
            #expect(export.status == 0, "\(export)")
            let imported = try await workspace.run(
                "import", "out", "list.txt", "--layout", "webdataset")
            #expect(imported.status == 1, "\(imported)")
            #expect(imported.error.contains("4 entries: 2 imported, 2 missing"), "\(imported)")
            for (url, status) in zip(urls, [0, 0, 1, 1] as [Int32]) {
                #expect(try await workspace.run("get", url).status == status, "\(url)")
            }
        }
    }

    @Test func findsFilesOfCurl() async throws {
        try await withFiles { workspace in
            try FileManager.default.createDirectory(
                atPath: workspace.folder + "/d", withIntermediateDirectories: true)
            try workspace.write(Fixtures.png(seed: 1), to: "d/a")
            try workspace.write(Fixtures.png(seed: 2), to: "d/c%20d.png")
            try workspace.write(Array("no image".utf8), to: "d/b.png")
            let result = try await workspace.run("import", "d", "list.txt", "--layout", "curl")
            #expect(result.status == 1, "\(result)")
            for text in [
                "list.txt:1: http://h.example/a/b.png: b.png is also the file of list.txt:4",
                "4 entries: 2 imported, 2 refused", "2 of 4 entries are not in the cache",
            ] {
                #expect(result.error.contains(text), "\(text): \(result)")
            }
            // A bad file blacklists nothing.
            let failed = try await workspace.run("failed", "list")
            #expect(failed.output.isEmpty, "\(failed)")

            // Two downloads of `curl -O` to one name left one file.
            try FileManager.default.createDirectory(
                atPath: workspace.folder + "/e", withIntermediateDirectories: true)
            try workspace.write(Fixtures.png(seed: 1), to: "e/a.png")
            try workspace.write(Fixtures.png(seed: 2), to: "e/b.png")
            let urls = [
                "http://h.example/a.png", "http://h.example/x/a.png", "http://h.example/b.png",
            ]
            try workspace.manifest(urls + [urls[2]], name: "list.txt")
            let two = try await workspace.run("import", "e", "list.txt", "--layout", "curl")
            #expect(two.status == 1, "\(two)")
            for text in [
                "list.txt:1: \(urls[0]): a.png is also the file of list.txt:2",
                "list.txt:2: \(urls[1]): a.png is also the file of list.txt:1",
                "4 entries: 1 imported, 1 duplicate, 2 refused",
            ] {
                #expect(two.error.contains(text), "\(two)")
            }
        }
    }

    /// Neither the file nor a folder of its path may be a link to somewhere else.
    @Test(arguments: [
        ("ln -s ../../secret.png d/h.example/a.png", false),
        ("ln -s \"$PWD/secret.png\" d/h.example/a.png", false),
        ("rmdir d/h.example; mkdir o; cp secret.png o/a.png; ln -s ../o d/h.example", false),
        (
            "rmdir d/h.example; mkdir -p o/h.example; cp secret.png o/h.example/a.png; rmdir d; "
                + "ln -s o d", true
        ),
        ("cp secret.png d/b.png; ln -s ../b.png d/h.example/a.png", true),
    ])
    func linksStayInTheFolder(script: String, isTaken: Bool) async throws {
        try await withWorkspace { workspace in
            try workspace.write(Fixtures.png(seed: 1), to: "secret.png")
            try workspace.manifest(["http://h.example/a.png"], name: "list.txt")
            var shell = workspace.command(["-euc", "mkdir -p d/h.example; " + script])
            shell.executable = "/bin/sh"
            #expect(try await shell.run().status == 0)
            let result = try await workspace.run("import", "d", "list.txt", "--layout", "mirror")
            #expect(result.status == (isTaken ? 0 : 1), "\(result)")
            #expect(
                result.error.contains(
                    isTaken
                        ? "1 imported"
                        : "list.txt:1: http://h.example/a.png: d/h.example/a.png: a symbolic link "
                            + "leads out of the folder\n"), "\(result)")
        }
    }

    @Test(arguments: ["mirror", "curl", "sdwebimage", "webdataset"])
    func messagesMaskQueries(layout: String) async throws {
        try await withWorkspace { workspace in
            let urls = ["http://h.example/a.png?token=HUSH%20HUSH", "http://h.example/b?sig=HUSH"]
            try workspace.manifest(urls + ["ht tp://x?token=HUSH"], name: "list.txt")
            var shell = workspace.command([
                "-euc",
                "mkdir -p d/h.example; cd d; tar -cf 0.tar h.example; cd h.example; "
                    + "echo x > 'a.png?token=HUSH HUSH'; ln -s /etc/hostname 'b?sig=HUSH'",
            ])
            shell.executable = "/bin/sh"
            #expect(try await shell.run().status == 0)
            let result = try await workspace.run("import", "d", "list.txt", "--layout", layout)
            #expect(result.status == 1, "\(result)")
            #expect(result.error.contains("list.txt:1: http://h.example/a.png?token=***: "))
            #expect(!result.error.contains("HUSH"), "\(result)")
        }
    }

    @Test func linesKeepTheirFields() async throws {
        try await withFiles { workspace in
            try FileManager.default.createDirectory(
                atPath: workspace.folder + "/d", withIntermediateDirectories: true)
            for index in 0..<3 {
                try workspace.write(Fixtures.png(seed: index), to: "d/\(index).png")
            }
            try workspace.manifest(
                [
                    "http://h.example/0.png key=zero attr.tag=x", "http://h.example/1.png ttl=1s",
                    "http://h.example/2.png resize=2x2 encode=png", "http://h.example/3.png",
                ], name: "list.txt")
            let result = try await workspace.run(
                "import", "d", "list.txt", "--layout", "curl", "--ttl", "30d", "--variant",
                "s=1x1,png")
            #expect(result.status == 1, "\(result)")
            #expect(
                result.error.contains("list.txt:4: http://h.example/3.png: no file d/3.png"),
                "\(result)")
            let rows = try await workspace.query(
                """
                SELECT key, variant_name.name, width, (expires_at - validated_at) / 1000
                FROM resource JOIN variant ON resource.id = resource_id
                JOIN variant_name ON variant_name.id = variant.name ORDER BY 1, 2
                """)
            #expect(
                rows.map { $0.map { $0 ?? "" }.joined(separator: ",") } == [
                    "http://h.example/1.png,main,8,1", "http://h.example/1.png,s,1,1",
                    "http://h.example/2.png,main,2,2592000", "http://h.example/2.png,s,1,2592000",
                    "zero,main,8,2592000", "zero,s,1,2592000",
                ])
            let attribute = try await workspace.run("attr", "get", "zero", "tag")
            #expect(attribute.output.hasPrefix("x"), "\(attribute)")
        }
    }

    @Test func samplesAreFoundInShards() async throws {
        try await withFiles { workspace in
            let export = try await workspace.run(
                "export", "out", "list.txt", "--layout", "webdataset", "--cache-dir", "first")
            #expect(export.status == 0, "\(export)")
            let shard = try Data(
                contentsOf: URL(filePath: workspace.folder + "/out/00000.tar"))
            // In the third sample: each has a header and a padded block for both members.
            try workspace.write(Array(shard.prefix(2 * 4 * 512 + 600)), to: "cut.tar")
            let result = try await workspace.run(
                "import", "cut.tar", "list.txt", "--layout", "webdataset")
            #expect(result.status == 1, "\(result)")
            #expect(result.error.contains("cut.tar: Truncated tar archive"), "\(result)")
            #expect(result.error.contains("4 entries: 2 imported, 2 missing"), "\(result)")
            let text = try await workspace.run(
                "import", "list.txt", "list.txt", "--layout", "webdataset")
            #expect(text.error.contains("list.txt: Unrecognized archive format"), "\(text)")
            // Archives of `tar -c .`, and folders with a dot in them.
            for folder in [".", "./shards.v1"] {
                var pack = workspace.command([
                    "-euc",
                    "rm -rf tree; mkdir -p tree/$0; tar -xf out/00000.tar -C tree/$0; "
                        + "tar --sort=name -cf all.tar -C tree .",
                    folder,
                ])
                pack.executable = "/bin/sh"
                #expect(try await pack.run().status == 0)
                let found = try await workspace.command([
                    "import", "all.tar", "list.txt", "--layout", "webdataset", "--cache-dir",
                    "from-\(folder.count)",
                ]).run()
                #expect(found.status == 0, "\(found)")
                #expect(found.error.contains("4 imported"), "\(found)")
            }
        }
    }

    @Test(arguments: [
        (["none", "list.txt", "--layout", "curl"], 2 as Int32, "none: No such file or directory"),
        (["list.txt", "list.txt", "--layout", "mirror"], 2, "not a folder"),
        ([".", "list.txt", "--layout", "webdataset"], 2, "no tar archive in it"),
        ([".", "--layout", "mirror"], 64, "name a list of the images"),
        ([".", "list.txt"], 64, "--layout"),
    ])
    func refusesMistakes(
        _ arguments: [String], _ status: Int32, _ message: String
    ) async throws {
        try await withFiles { workspace in
            let result = try await workspace.command(["import"] + arguments).run()
            #expect(result.status == status, "\(result)")
            #expect(result.error.contains(message), "\(result)")
        }
    }
}
