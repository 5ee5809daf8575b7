import CacheStorage
import Foundation
import Hashing
import PrefetchModel
import Testing

extension OpenCache.LockWaiting {
    /// For a cache without another holder: a program started by a concurrent test briefly inherits
    /// the lock's descriptor, between fork and exec.
    static let aMoment = OpenCache.LockWaiting.upTo(.seconds(30))
}

/// Enqueues changes as a run does and waits for their commit.
func commit(
    _ changes: [MetadataChange], in cache: OpenCache, run: Int64 = 1,
    configuration: MetadataWriter.WriterConfiguration = MetadataWriter.WriterConfiguration()
) throws -> [[Int]] {
    let writer = try MetadataWriter(cache, run: run, configuration: configuration)
    for (token, change) in changes.enumerated() { writer.enqueue(change, token: token) }
    writer.finish()
    var groups: [[Int]] = []
    try writer.run { groups.append($0) }
    return groups
}

/// Stores rows and their files as a run does.
func store(_ rows: [(row: ImageChange, bytes: [UInt8])], in cache: OpenCache) throws {
    for item in rows {
        try item.bytes.withUnsafeBytes {
            try cache.content.store($0, as: item.row.image, originURL: item.row.key)
        }
    }
    let groups = try commit(rows.map { .image($0.row) }, in: cache)
    #expect(groups.flatMap(\.self) == Array(rows.indices))
}

/// Executes SQL with another program.
func runSQL(_ sql: String, _ database: String) throws {
    _ = try runPython(
        "c = sqlite3.connect(sys.argv[1]); c.executescript(open(sys.argv[2]).read()); c.commit()",
        sql, database)
}

/// The first column of a query's first row, read with another program.
func queried(_ query: String, _ database: String) throws -> String {
    try runPython(
        "print(sqlite3.connect(sys.argv[1]).execute(open(sys.argv[2]).read()).fetchone()[0])",
        query, database
    ).trimmingCharacters(in: .newlines)
}

private func runPython(_ program: String, _ sql: String, _ database: String) throws -> String {
    let script = database + ".sql"
    try sql.write(toFile: script, atomically: true, encoding: .utf8)
    defer { try? FileManager.default.removeItem(atPath: script) }
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/python3")
    process.arguments = [
        "-I", "-S", "-c", "import sqlite3, sys\n" + program, database, script,
    ]
    let output = Pipe()
    process.standardOutput = output
    try process.run()
    let bytes = output.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    #expect(process.terminationStatus == 0)
    return String(decoding: bytes, as: UTF8.self)
}

/// Looks up entries as a run's thread does.
struct Lookup {
    let reader: CacheReader
    let index: FreshnessIndex

    init(
        _ cache: OpenCache, expectedLookups: Int = 0,
        matchesVary: @escaping @Sendable (String) -> Bool = { _ in true }
    ) throws {
        reader = try CacheReader(cache.directory, varyTest: VaryTest(matchesVary))
        index = try FreshnessIndex(
            CacheCatalog(cache), expectedLookups: expectedLookups, marksRedirects: true)
    }

    func callAsFunction(
        _ keys: [String], recipe: Recipe = Recipe()
    ) throws -> [FreshnessRecord?] {
        let hasher = SHA256Hasher()
        let recipe = RecipeFingerprint(recipe.canonicalText, hasher: hasher)
        return try index.records(
            of: keys.map { VariantFingerprint(KeyFingerprint($0, hasher: hasher), recipe) },
            with: reader)
    }
}

/// Rows with arbitrary bytes instead of images, since the storage does not decode them.
enum Sample {
    static func digest(_ bytes: [UInt8]) -> ContentDigest {
        bytes.withUnsafeBytes { SHA256Hasher().digest(of: $0) }
    }

    static func row(
        key: String, bytes: [UInt8], recipe: Recipe = Recipe(), expiresAt: Int64 = 1000
    ) -> (row: ImageChange, bytes: [UInt8]) {
        let image = StoredImage(
            digest: digest(bytes), format: .png, widthInPixels: 3, heightInPixels: 2,
            size: ByteCount(bytes.count))
        let row = ImageChange(
            key: key,
            body: .new(
                SourceImage(
                    digest: digest(bytes), format: .png, widthInPixels: 3, heightInPixels: 2,
                    size: ByteCount(bytes.count)),
                ResourceValidation(
                    location: ResourceLocation(url: key, finalURL: nil, host: "http://a"),
                    response: StoredResponse(entityTag: "\"e\""),
                    fetchedAt: Timestamp(milliseconds: 10),
                    validatedAt: Timestamp(milliseconds: 10),
                    expiresAt: Timestamp(milliseconds: expiresAt))),
            variants: [
                VariantChange(
                    RequestedVariant(name: .main, recipe: recipe), image: image,
                    createdAt: Timestamp(milliseconds: 10))
            ])
        return (row, bytes)
    }
}

extension ImageChange {
    /// The image of a sample's only variant.
    var image: StoredImage { variants[0].image }
    var recipe: Recipe { variants[0].variant.recipe }

    /// Changes the metadata of a sample's response.
    mutating func changeValidation(_ change: (inout ResourceValidation) -> Void) {
        guard case .new(let source, var validation) = body else {
            preconditionFailure("a sample has a new body")
        }
        change(&validation)
        body = .new(source, validation)
    }
}

extension PartialStore {
    /// The part that ``take(key:url:into:)`` would return; nil without a body of that key and URL.
    func part(key: String, url: String) throws -> PartialBody? {
        guard let found = try part(key: key), found.url == url else { return nil }
        return found
    }
}

extension [RequestedVariant] {
    static func main(_ recipe: Recipe = Recipe()) -> [RequestedVariant] {
        [RequestedVariant(name: .main, recipe: recipe)]
    }
}

/// A temporary folder, removed with its last reference.
final class TemporaryFolder: Sendable {
    let path: String

    init() throws {
        path = NSTemporaryDirectory() + "prefetch-tests-" + UUID().uuidString
        try FileManager.default.createDirectory(
            atPath: path, withIntermediateDirectories: false,
            attributes: [.posixPermissions: 0o700])
    }

    deinit {
        try? FileManager.default.removeItem(atPath: path)
    }
}
