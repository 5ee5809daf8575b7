import Foundation
import TestSupport
import Testing
import Threading

/// `prefetch export s3://BUCKET/PREFIX`.
@Suite(.timeLimit(.minutes(15)))
struct ExportBucketTests {
    /// The objects of a bucket `b`, which an origin serves.
    private final class Objects: Sendable {
        private let stored = Monitor<[String: [UInt8]]>([:])
        private let parts = Monitor<[String: [UInt8]]>([:])

        var all: [String: [UInt8]] { stored.withLock { $0 } }
        func add(_ key: String, _ bytes: [UInt8]) { stored.withLock { $0[key] = bytes } }

        func answer(to request: Origin.Request) -> Response? {
            let target = URLComponents(string: request.target)
            let query = Dictionary(
                (target?.queryItems ?? []).map { ($0.name, $0.value ?? "") },
                uniquingKeysWith: { $1 })
            let key = String((target?.path ?? "").dropFirst("/b/".count))
            let tag = Response(headers: [("ETag", "\"e\"")])
            return stored.withLock { stored in
                switch request.method {
                case "GET" where query["list-type"] != nil:
                    let keys = stored.keys.sorted().filter {
                        $0.hasPrefix(query["prefix"] ?? "") && $0 > query["start-after"] ?? ""
                    }
                    let contents = keys.map {
                        "<Contents><Key>\($0)</Key><Size>1</Size></Contents>"
                    }
                    return .text(
                        "<ListBucketResult><IsTruncated>false</IsTruncated>\(contents.joined())"
                            + "</ListBucketResult>", type: "application/xml")
                case "GET": return stored[key].map { Response(body: $0) } ?? .notFound
                case "POST" where query["uploads"] != nil:
                    return .text(
                        "<InitiateMultipartUploadResult><UploadId>u</UploadId>"
                            + "</InitiateMultipartUploadResult>", type: "application/xml")
                case "PUT" where query["uploadId"] != nil:
                    parts.withLock { $0[key, default: []] += request.body }
                    return tag
                case "POST":
                    stored[key] = parts.withLock { $0.removeValue(forKey: key) }
                    return .text(
                        "<CompleteMultipartUploadResult><ETag>e</ETag>"
                            + "</CompleteMultipartUploadResult>", type: "application/xml")
                case "DELETE":
                    stored[key] = nil
                    return Response(204)
                default:
                    stored[key] = request.body
                    return tag
                }
            }
        }
    }

    /// Runs the body with a cache of `images` PNGs, listed in `list.txt`, and a bucket.
    private func withBucket(
        images: Int = 3, side: Int = 8,
        _ body: (Workspace, Origin, Objects, [String]) async throws -> Void
    ) async throws {
        try await withOrigin { origin in
            let objects = Objects()
            origin.serve { $0.path.hasPrefix("/b") ? objects.answer(to: $0) : nil }
            let urls = (0..<images).map { index in
                origin.serve(
                    "/\(index).png",
                    .image(Fixtures.png(width: side, height: side, seed: index, isNoise: true)))
                return origin.url("/\(index).png")
            }
            try await withWorkspace { workspace in
                try workspace.manifest(urls, name: "list.txt")
                let run = try await workspace.run("run", "list.txt")
                #expect(run.status == 0, "\(run)")
                try await body(workspace, origin, objects, urls)
            }
        }
    }

    private func export(
        _ workspace: Workspace, _ origin: Origin, to prefix: String = "p", _ arguments: String...
    ) async throws -> CommandResult {
        var command = workspace.command(
            ["export", "s3://b/\(prefix)", "list.txt", "--sink-credentials", "none"] + arguments)
        command.environment.merge(Bucket.environment(origin)) { $1 }
        return try await command.run()
    }

    @Test func objectsAreThoseOfAFolder() async throws {
        try await withBucket { workspace, origin, objects, _ in
            for layout in ["webdataset", "mirror", "imagefolder", "workbox"] {
                let folder = try await workspace.run(
                    "export", "out", "list.txt", "--layout", layout)
                #expect(folder.status == 0, "\(folder)")
                let sent = try await export(workspace, origin, to: layout, "--layout", layout)
                #expect(sent.status == 0, "\(sent)")
                var count = 0
                for name in try FileManager.default.subpathsOfDirectory(
                    atPath: workspace.folder + "/out")
                {
                    let path = "\(workspace.folder)/out/\(name)"
                    guard let bytes = FileManager.default.contents(atPath: path) else { continue }
                    count += 1
                    guard name != ".prefetch-export" else { continue }
                    #expect(objects.all["\(layout)/\(name)"].map { Data($0) } == bytes, "\(name)")
                }
                #expect(count > 2)
                #expect(objects.all.keys.count { $0.hasPrefix("\(layout)/") } == count)
                try FileManager.default.removeItem(atPath: workspace.folder + "/out")
                #expect(!FileManager.default.fileExists(atPath: workspace.folder + "/s3:"))
            }
        }
    }

    /// The flags of `--sink`, and a scheme in capitals.
    @Test func objectsHaveTheChosenClass() async throws {
        try await withBucket { workspace, origin, objects, _ in
            let page = "\(workspace.folder)/site/page.html"
            try FileManager.default.createDirectory(
                atPath: workspace.folder + "/site", withIntermediateDirectories: true)
            var command = workspace.command([
                "export", "S3://b/p", "list.txt", "--sink-credentials", "none", "--layout",
                "mirror", "--sink-encryption", "AES256", "--sink-storage-class", "STANDARD_IA",
                "--sink-addressing", "path", "--snippet", page,
            ])
            command.environment.merge(Bucket.environment(origin)) { $1 }
            let sent = try await command.run()
            #expect(sent.status == 0, "\(sent)")
            #expect(objects.all.count == 4)
            #expect(!FileManager.default.fileExists(atPath: workspace.folder + "/S3:"))
            let writes = origin.snapshot.requests.filter { $0.method == "PUT" }
            #expect(!writes.isEmpty)
            for request in writes {
                #expect(request.header("x-amz-server-side-encryption") == "AES256")
                #expect(request.header("x-amz-storage-class") == "STANDARD_IA")
            }
            let html = try String(contentsOfFile: page, encoding: .utf8)
            let folder = try #require(objects.all.keys.first { $0.hasSuffix("/0.png") })
            #expect(
                html.contains("src=\"\(folder.dropFirst(2).replacing(":", with: "%3A"))\""),
                "\(html)")
        }
    }

    /// A shard of several parts.
    @Test func largeShardsAreSentInParts() async throws {
        try await withBucket(images: 4, side: 1400) { workspace, origin, objects, _ in
            let sent = try await export(workspace, origin, "--layout", "webdataset")
            #expect(sent.status == 0, "\(sent)")
            let shard = try #require(objects.all["p/00000.tar"])
            #expect(shard.count > 17 << 20)
            try workspace.write(shard, to: "shard.tar")
            var tar = workspace.command(["tf", "shard.tar"])
            tar.executable = "/bin/tar"
            #expect(try await tar.run().output.split(separator: "\n").count == 8)
        }
    }

    @Test func followsTheList() async throws {
        try await withBucket { workspace, origin, objects, urls in
            for (lines, text) in [
                (urls, "3 files written"), (urls, "3 images: unchanged"),
                (Array(urls.prefix(1)), "1 unchanged, 2 removed"), (urls, "2 files written"),
            ] {
                try workspace.manifest(lines, name: "list.txt")
                let sent = try await export(workspace, origin, "--layout", "mirror")
                #expect(sent.status == 0 && sent.error.contains(text), "\(sent)")
                #expect(objects.all.count == lines.count + 1)
            }
            try workspace.manifest(Array(urls.prefix(1)), name: "list.txt")
            let kept = try await export(workspace, origin, "--layout", "mirror", "--update")
            #expect(kept.status == 0 && objects.all.count == 4, "\(kept)")
        }
    }

    @Test func neverReplacesForeignObjects() async throws {
        try await withBucket { workspace, origin, objects, _ in
            objects.add("p/2.png", [1])
            objects.add("p/other", [2])
            let sent = try await export(workspace, origin, "--name", "{n}.{ext}")
            #expect(sent.status == 2, "\(sent)")
            #expect(sent.error.contains("has objects that no export wrote, like 2.png"), "\(sent)")
            #expect(objects.all.count == 2)
        }
    }

    @Test(arguments: [
        (["s3://b/p", "--layout", "kingfisher8"], "kingfisher8 needs a folder"),
        (["s3://b/p", "--layout", "mirror", "--link"], "a bucket has no links and modes"),
        (["S3:b/p", "--layout", "mirror"], "a bucket is written s3://BUCKET/PREFIX"),
        (["gs://b/p", "--layout", "mirror"], "a bucket is written s3://BUCKET/PREFIX"),
        (["s3://b/../p", "--layout", "mirror"], "a bucket is written s3://BUCKET/PREFIX"),
    ])
    func refusesMistakes(_ arguments: [String], _ message: String) async throws {
        try await withWorkspace { workspace in
            let export = try await workspace.command(["export"] + arguments).run()
            #expect(export.status == 64 && export.error.contains(message), "\(export)")
        }
    }
}
