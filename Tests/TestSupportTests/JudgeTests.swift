import Foundation
import TestSupport
import Testing

/// A cache as DESIGN section 6 lays it out, made without the program, and then damaged.
private struct HandmadeCache {
    let folder: URL
    var cache: String { folder.appending(path: "cache").path }

    private static let script = """
        import hashlib, os, sqlite3, sys
        cache, *pictures = sys.argv[1:]
        os.umask(0o077)
        os.makedirs(cache + "/content"); os.mkdir(cache + "/tmp")
        open(cache + "/CACHEDIR.TAG", "w").write("Signature: 8a477f597d28d172789f06886806bc55\\n")
        open(cache + "/lock", "w").close()
        base = sqlite3.connect(cache + "/prefetch.sqlite")
        base.execute("CREATE TABLE resource (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE) STRICT")
        base.execute("CREATE TABLE variant (resource_id INTEGER NOT NULL REFERENCES resource(id), "
            "recipe TEXT, sha256 BLOB, format TEXT, width INTEGER, height INTEGER, bytes INTEGER) STRICT")
        for index, name in enumerate(pictures):
            data = open(name, "rb").read()
            digest = hashlib.sha256(data)
            kind = "png" if name.endswith("png") else "jpeg"
            os.makedirs(f"{cache}/content/{digest.hexdigest()[:2]}", exist_ok=True)
            open(f"{cache}/content/{digest.hexdigest()[:2]}/{digest.hexdigest()}."
                + {"png": "png", "jpeg": "jpg"}[kind], "wb").write(data)
            size = (16, 12) if kind == "jpeg" else (8, 8)
            base.execute("INSERT INTO resource VALUES (?, ?)", (index, f"key{index}"))
            base.execute("INSERT INTO variant VALUES (?, 'original', ?, ?, ?, ?, ?)",
                (index, digest.digest(), kind, *size, len(data)))
        base.commit()
        """

    init(_ pictures: [(name: String, bytes: [UInt8])]) async throws {
        folder = FileManager.default.temporaryDirectory.appending(
            path: "judge-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        for picture in pictures {
            try Data(picture.bytes).write(to: folder.appending(path: picture.name))
        }
        try await python(HandmadeCache.script, [cache] + pictures.map(\.name))
    }

    func python(_ script: String, _ arguments: [String] = []) async throws {
        let command = Command(
            executable: "/usr/bin/python3", arguments: ["-c", script] + arguments,
            environment: ["PATH": "/usr/bin:/bin"], folder: folder.path)
        let result = try await command.run()
        #expect(result.status == 0, "\(result)")
    }

    func judge(sources: [String: String] = [:]) async throws -> Int {
        try await Judge.check(cache: cache, sources: sources, folder: folder.path)
    }
}

@Suite(.timeLimit(.minutes(5)))
struct JudgeTests {
    @Test func acceptsASoundCacheWithEveryKindOfFixture() async throws {
        var pictures = Fixtures.PNGKind.allCases.enumerated().map { index, kind in
            (name: "\(index).png", bytes: Fixtures.png(kind, seed: index))
        }
        for name in ["baseline.jpg", "progressive.jpg", "grey.jpg"] {
            pictures.append((name, try Fixtures.file(name)))
        }
        pictures.append(("noise.png", Fixtures.png(isNoise: true)))
        let cache = try await HandmadeCache(pictures)
        #expect(
            try await cache.judge(sources: [
                "key0": "0.png", "key5": "5.png", "key8": "baseline.jpg",
            ]) == 12)
        await #expect(throws: Judge.Verdict.self) {
            _ = try await cache.judge(sources: ["key0": "1.png"])
        }
        await #expect(throws: Judge.Verdict.self) {
            _ = try await cache.judge(sources: ["none": "1.png"])
        }
        try FileManager.default.removeItem(at: cache.folder)
    }

    @Test(arguments: [
        "open('cache/tmp/left', 'w')",
        "open('cache/stray', 'w')",
        "import os; os.chmod('cache', 0o755)",
        "import os; os.remove('cache/CACHEDIR.TAG')",
        "import glob, os; os.remove(glob.glob('cache/content/*/*')[0])",
        "import glob; open(glob.glob('cache/content/*/*.jpg')[0], 'ab').write(b'x')",
        "import glob; open(glob.glob('cache/content/*/*.jpg')[0], 'r+b').write(b'x')",
        "import glob, shutil; f = glob.glob('cache/content/*/*')[0]; shutil.copy(f, f + '2')",
        "import sqlite3; b = sqlite3.connect('cache/prefetch.sqlite'); "
            + "b.execute('UPDATE variant SET width = width + 1'); b.commit()",
        "import sqlite3; b = sqlite3.connect('cache/prefetch.sqlite'); "
            + "b.execute('DELETE FROM resource'); b.commit()",
        "import sqlite3; b = sqlite3.connect('cache/prefetch.sqlite'); "
            + "b.execute('DELETE FROM variant WHERE rowid = 1'); b.commit()",
    ])
    func refusesEveryDamage(script: String) async throws {
        let cache = try await HandmadeCache([
            ("a.png", Fixtures.png()), ("b.jpg", try Fixtures.file("baseline.jpg")),
        ])
        #expect(try await cache.judge() == 2)
        try await cache.python("import os; os.umask(0o077)\n" + script)
        await #expect(throws: Judge.Verdict.self) { _ = try await cache.judge() }
        try FileManager.default.removeItem(at: cache.folder)
    }

    @Test func refusesCutPicturesUnderATrueHash() async throws {
        let whole = [
            Fixtures.png(), try Fixtures.file("baseline.jpg"), try Fixtures.file("progressive.jpg"),
        ]
        for picture in whole {
            for missing in [1, 2, 12, picture.count / 2] {
                let name = picture.first == 0x89 ? "a.png" : "a.jpg"
                let cache = try await HandmadeCache([(name, picture.dropLast(missing))])
                await #expect(throws: Judge.Verdict.self, "\(name) less \(missing) bytes") {
                    _ = try await cache.judge()
                }
                try FileManager.default.removeItem(at: cache.folder)
            }
        }
    }
}
