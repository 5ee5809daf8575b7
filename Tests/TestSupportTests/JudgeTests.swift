import Foundation
import TestSupport
import Testing

/// A cache laid out as in docs/cache.md, created without the program and then damaged.
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
        base.execute("CREATE TABLE resource (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, "
            "url TEXT, host TEXT, etag TEXT, vary TEXT, validated_at INTEGER, expires_at INTEGER) STRICT")
        base.execute("CREATE TABLE run (id INTEGER PRIMARY KEY) STRICT")
        base.execute("INSERT INTO run VALUES (1)")
        base.execute("CREATE TABLE freshness (fingerprint INTEGER PRIMARY KEY, fingerprint_low INTEGER, "
            "resource_id INTEGER, validated_at INTEGER, expires_at INTEGER, vary INTEGER) STRICT")
        base.execute("CREATE TABLE attribute (resource_id INTEGER, name TEXT, value BLOB) STRICT")
        base.execute("CREATE TABLE failure (key TEXT PRIMARY KEY, host TEXT, reason TEXT, "
            "http_status INTEGER, attempts INTEGER, class TEXT, runs_in_a_row INTEGER, "
            "first_failed_at INTEGER, last_failed_at INTEGER, blacklisted_until INTEGER, run_id INTEGER) STRICT")
        def words(text):
            digest = hashlib.sha256(text.encode()).digest()
            return [int.from_bytes(digest[i:i + 8], "big", signed=True) for i in (0, 8)]
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
            vary = None if index % 2 else "accept: image/png"
            base.execute("INSERT INTO resource VALUES (?, ?, 'http://h/', 'http://h', NULL, ?, 5, 9)",
                (index, f"key{index}", vary))
            high, low = (a ^ b for a, b in zip(words(f"key{index}"), words("original")))
            base.execute("INSERT INTO freshness VALUES (?, ?, ?, 5, 9, ?)",
                (high, low, index, vary and words(vary)[0]))
            base.execute("INSERT INTO attribute VALUES (?, 'note', x'00')", (index,))
            base.execute("INSERT INTO variant VALUES (?, 'original', ?, ?, ?, ?, ?)",
                (index, digest.digest(), kind, *size, len(data)))
        base.execute("ALTER TABLE resource ADD COLUMN final_url TEXT")
        base.execute("ALTER TABLE resource ADD COLUMN permanent_url TEXT")
        base.execute("ALTER TABLE resource ADD COLUMN thumbhash BLOB")
        base.execute("ALTER TABLE resource ADD COLUMN color INTEGER")
        base.execute("UPDATE resource SET thumbhash = x'0102030405', color = 255 WHERE id = 0")
        base.execute("UPDATE resource SET final_url = 'http://i/2', permanent_url = 'http://i/1' "
            "WHERE id = 0")
        base.execute("CREATE TABLE host (host TEXT PRIMARY KEY, concurrency INTEGER, "
            "failures_in_a_row INTEGER, cooling_until INTEGER, updated_at INTEGER) STRICT")
        base.executemany("INSERT INTO host (host, concurrency, failures_in_a_row, cooling_until, updated_at) VALUES (?, ?, ?, ?, 5)", [("http://h", 2, 0, None),
            ("http://h:81", None, 0, 604800005), ("https://[::1]:81", None, 3, 1)])
        base.execute("CREATE TABLE partial (key TEXT PRIMARY KEY, url TEXT, etag TEXT, "
            "last_modified TEXT, bytes INTEGER, sha256 BLOB, total INTEGER, created_at INTEGER) STRICT")
        for key, tag, date, total in [("p", '"e"', None, None), ("q", None, "then", 2097152)]:
            part = key.encode() * (1 << 20) + b"."
            base.execute("INSERT INTO partial VALUES (?, 'http://h/p', ?, ?, ?, ?, ?, 5)",
                (key, tag, date, len(part), hashlib.sha256(part).digest(), total))
            open(f"{cache}/tmp/{hashlib.sha256(key.encode()).hexdigest()}.partial", "wb").write(part)
        base.execute("INSERT INTO failure VALUES ('gone', 'http://h', 'http-status', 404, 1, "
            "'permanent', 1, 5, 5, 3600005, NULL)")
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

    private init(folder: URL) {
        self.folder = folder
    }

    /// A PNG and a JPEG, created once and copied for each test.
    private static let pair = Task {
        try await HandmadeCache([
            ("a.png", Fixtures.png()), ("b.jpg", try Fixtures.file("baseline.jpg")),
        ])
    }

    static func copyOfPair() async throws -> HandmadeCache {
        let folder = FileManager.default.temporaryDirectory.appending(
            path: "judge-\(UUID().uuidString)")
        try FileManager.default.copyItem(at: try await pair.value.folder, to: folder)
        return HandmadeCache(folder: folder)
    }

    func python(_ script: String, _ arguments: [String] = []) async throws {
        let answer = try await PythonServer.run(script, arguments, folder: folder.path)
        #expect(answer.status == 0, "\(answer.text)")
    }

    func judge(sources: [String: String] = [:]) async throws -> Int {
        try await Judge.check(cache: cache, sources: sources, folder: folder.path)
    }
}

private func change(_ sql: String) -> String {
    """
    import sqlite3
    base = sqlite3.connect('cache/prefetch.sqlite')
    base.execute("\(sql)")
    base.commit()
    """
}

@Suite(.timeLimit(.minutes(15)))
struct JudgeTests {
    @Test func acceptsSoundCacheOfEveryFixture() async throws {
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
        change("DELETE FROM freshness WHERE resource_id = 1"),
        change("UPDATE freshness SET fingerprint = fingerprint + 1"),
        change("UPDATE freshness SET fingerprint_low = fingerprint_low + 1"),
        change("UPDATE freshness SET expires_at = 10 WHERE resource_id = 0"),
        change("UPDATE freshness SET validated_at = 6 WHERE resource_id = 0"),
        change("UPDATE freshness SET resource_id = 0"),
        change("UPDATE freshness SET vary = NULL"),
        change("UPDATE freshness SET vary = 0"),
        change("INSERT INTO freshness VALUES (1, 2, 0, 5, 9, NULL)"),
        change("UPDATE resource SET url = 'http://user@h/'"),
        change("UPDATE resource SET host = 'http://other'"),
        change("UPDATE attribute SET name = ''"),
        change("UPDATE attribute SET value = zeroblob(65537)"),
        change("UPDATE attribute SET resource_id = 9"),
        change("UPDATE attribute SET name = 'prefetch.color'"),
        change("UPDATE resource SET thumbhash = x'01020304' WHERE id = 0"),
        change("UPDATE resource SET color = 0x1000000 WHERE id = 0"),
        change("UPDATE resource SET thumbhash = NULL WHERE id = 0"),
        change("UPDATE failure SET reason = 'disk'"),
        change("UPDATE failure SET http_status = 403"),
        change("UPDATE failure SET runs_in_a_row = 0"),
        change("UPDATE failure SET class = 'transient'"),
        change("UPDATE failure SET blacklisted_until = blacklisted_until + 30 * 86400000"),
        change("UPDATE failure SET run_id = 2"),
        change("DROP TABLE freshness"),
        change("UPDATE resource SET final_url = NULL WHERE id = 0"),
        change("UPDATE resource SET permanent_url = 'http://user@i/1' WHERE id = 0"),
        change("UPDATE resource SET permanent_url = 'ftp://i/1' WHERE id = 0"),
        change("UPDATE resource SET permanent_url = url WHERE id = 0"),
        change("UPDATE host SET concurrency = 0"),
        change("UPDATE host SET concurrency = NULL"),
        change("UPDATE host SET failures_in_a_row = -1"),
        change("UPDATE host SET cooling_until = 604800006 WHERE host = 'http://h:81'"),
        change("UPDATE host SET cooling_until = 5 WHERE host = 'http://h:81'"),
        change("UPDATE host SET updated_at = -1"),
        change("UPDATE host SET host = 'h' WHERE host = 'http://h'"),
        change("UPDATE host SET host = 'http://h/' WHERE host = 'http://h'"),
        change("DELETE FROM partial WHERE key = 'p'"),
        change("UPDATE partial SET key = 'r' WHERE key = 'p'"),
        change("UPDATE partial SET bytes = bytes + 1"),
        change("UPDATE partial SET sha256 = zeroblob(32)"),
        change("UPDATE partial SET total = bytes"),
        change("UPDATE partial SET etag = NULL"),
        change("UPDATE partial SET etag = 'W/' || etag"),
        change("UPDATE partial SET last_modified = 'then'"),
        change("UPDATE partial SET url = 'http://user@h/'"),
        "import glob, os; os.remove(glob.glob('cache/tmp/*.partial')[0])",
        "import glob; open(glob.glob('cache/tmp/*.partial')[0], 'r+b').write(b'x')",
        "import glob; open(glob.glob('cache/tmp/*.partial')[0], 'ab').write(b'x')",
        "import glob, os; f = glob.glob('cache/tmp/*')[0]; os.rename(f, f + '.new')",
    ])
    func rejectsEveryDamage(script: String) async throws {
        let cache = try await HandmadeCache.copyOfPair()
        #expect(try await cache.judge() == 2)
        try await cache.python("import os; os.umask(0o077)\n" + script)
        await #expect(throws: Judge.Verdict.self) { _ = try await cache.judge() }
        try FileManager.default.removeItem(at: cache.folder)
    }

    /// Two resources with originals named main; the second also has `web`.
    private static let names = """
        import sqlite3
        base = sqlite3.connect('cache/prefetch.sqlite')
        base.executescript(\"\"\"
            CREATE TABLE variant_name (id INTEGER PRIMARY KEY, name TEXT, recipe TEXT);
            INSERT INTO variant_name VALUES (0, 'main', 'original'), (3, 'web', 'png'),
                (4, 'copy', 'original');
            ALTER TABLE variant ADD COLUMN name INTEGER DEFAULT 0;
            ALTER TABLE variant ADD COLUMN superseded INTEGER DEFAULT 0;
            ALTER TABLE freshness ADD COLUMN superseded INTEGER DEFAULT 0;
        \"\"\")

        """

    @Test(arguments: [
        ("UPDATE variant_name SET recipe = 'png' WHERE id = 0", true),
        ("UPDATE variant SET name = 3; UPDATE freshness SET superseded = 2", true),
        ("UPDATE variant SET superseded = 1; UPDATE freshness SET superseded = 1", true),
        ("UPDATE variant SET name = 3", false),
        ("UPDATE variant SET superseded = 1", false),
        ("UPDATE variant SET superseded = 2; UPDATE freshness SET superseded = 1", false),
        ("UPDATE variant SET name = 5; UPDATE freshness SET superseded = 2", false),
        ("UPDATE variant_name SET name = 'second' WHERE id = 0", false),
        ("UPDATE variant_name SET name = '-web' WHERE id = 3", false),
        ("UPDATE variant_name SET recipe = '' WHERE id = 3", false),
        ("UPDATE variant SET resource_id = 0", false),
    ])
    func checksVariantNames(sql: String, isSound: Bool) async throws {
        let cache = try await HandmadeCache([
            ("a.png", Fixtures.png()), ("b.jpg", try Fixtures.file("baseline.jpg")),
        ])
        try await cache.python(JudgeTests.names)
        #expect(try await cache.judge() == 2)
        try await cache.python(
            "import sqlite3; base = sqlite3.connect('cache/prefetch.sqlite'); "
                + "base.executescript(\"\(sql)\"); base.commit()")
        if isSound {
            #expect(try await cache.judge() == 2)
        } else {
            await #expect(throws: Judge.Verdict.self) { _ = try await cache.judge() }
        }
        try FileManager.default.removeItem(at: cache.folder)
    }

    @Test func requiresGivenVariants() async throws {
        let cache = try await HandmadeCache([("a.png", Fixtures.png())])
        try await cache.python(JudgeTests.names)
        func judge(_ names: String...) async throws -> Int {
            try await Judge.check(cache: cache.cache, variants: names, folder: cache.folder.path)
        }
        #expect(try await judge("main", "copy") == 1)
        for name in ["web", "other"] {
            await #expect(throws: Judge.Verdict.self) { _ = try await judge("main", name) }
        }
        try FileManager.default.removeItem(at: cache.folder)
    }

    @Test func rejectsTruncatedImagesWithMatchingHash() async throws {
        let whole = [
            Fixtures.png(), try Fixtures.file("baseline.jpg"), try Fixtures.file("progressive.jpg"),
        ]
        for picture in whole {
            let name = picture.first == 0x89 ? "a.png" : "a.jpg"
            // A PNG may lack its end chunk of 12 bytes, and two checksums of four.
            for missing in [name == "a.png" ? 21 : 1, 22, picture.count / 2] {
                let cache = try await HandmadeCache([(name, picture.dropLast(missing))])
                await #expect(throws: Judge.Verdict.self, "\(name) less \(missing) bytes") {
                    _ = try await cache.judge()
                }
                try FileManager.default.removeItem(at: cache.folder)
            }
        }
    }
}
