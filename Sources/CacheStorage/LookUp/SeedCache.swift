package import PrefetchModel
internal import SQLite
import Threading

/// Another cache. A run takes its fresh images instead of requesting them. It is not changed. It
/// only saves requests: after an error the run continues without it.
package final class SeedCache: Sendable {
    package let source: CacheCatalog
    private let firstFailure = Monitor<StorageError?>(nil)
    /// Whether a power cut may have torn its files: a run of another boot did not synchronise them.
    let mayHaveTornFiles: Bool

    package init(path: String) throws(StorageError) {
        source = try CacheCatalog(directory: CacheDirectory(path: path, access: .readOnly))
        mayHaveTornFiles = try source.database.read("reading the run log") {
            try RunLog.firstUnsynchronized(bootID: BootID.current(), in: $0) != nil
        }
    }

    /// The error after which it was not used any more; nil without one.
    package var failure: StorageError? { firstFailure.withLock { $0 } }

    /// Reads from the seed; nil after an error, now or earlier.
    package func reading<Result>(_ body: () throws(StorageError) -> Result) -> Result? {
        guard failure == nil else { return nil }
        do {
            return try body()
        } catch {
            firstFailure.withLock { $0 = $0 ?? error }
            return nil
        }
    }

    package func isSame(as directory: CacheDirectory) -> Bool {
        guard let own = FileIdentity(of: source.directory.handle) else { return false }
        return own == FileIdentity(of: directory.handle)
    }
}

extension CacheCatalog {
    /// The copies of keys with the variants of all given recipes, by their canonical text; nil
    /// where one is missing.
    package func copies(
        of wanted: [(key: String, recipes: [String])]
    ) throws(StorageError) -> [SeededCopy?] {
        guard !wanted.isEmpty else { return [] }
        return try database.read("looking up resources") { database in
            let resources = try database.prepare(
                """
                SELECT id, \(Statement.validationColumns), source_sha256, source_format,
                    source_width, source_height, source_bytes, thumbhash, color
                FROM resource WHERE key = ?
                """)
            let variants = try database.prepare(
                """
                SELECT sha256, format, width, height, bytes, decoded, orientation
                FROM variant WHERE resource_id = ? AND recipe = ?
                """)
            return try wanted.map { key, recipes in
                // A row that this program cannot have written is ignored.
                do {
                    let found = try resources.first([.text(key)]) { row in
                        (id: try row.integer(0), source: try row.seededSource())
                    }
                    guard let found, let (validation, source) = found.source else { return nil }
                    let images = try recipes.compactMap { recipe in
                        try variants.first([.integer(found.id), .text(recipe)]) {
                            try $0.storedImage(from: 0, details: 5)
                        } ?? nil
                    }
                    guard images.count == recipes.count, images.allSatisfy(\.isPossible) else {
                        return nil
                    }
                    return (validation: validation, source: source, images: images)
                } catch let error as SQLiteError where error.code.primary == .corrupt {
                    return nil
                }
            }
        }
    }
}

/// A database on a server, read in blocks as look-ups need them.
package struct RemoteCatalog {
    package let catalog: CacheCatalog
    private let file: RemoteDatabase

    /// Opens the database. `path` names it in messages, `directory` is a cache of this user, and
    /// `read` reads a range of its bytes.
    ///
    /// - Throws: the error of `read`, or ``StorageError`` if it cannot be used.
    package init(
        path: String, size: ByteCount, for directory: CacheDirectory,
        _ read: @escaping (Range<Int>) throws -> [UInt8]
    ) throws {
        let file = RemoteDatabase(size: size.bytes, read)
        do {
            catalog = CacheCatalog(
                database: try CacheDatabase(remote: file, path: path, for: directory),
                directory: directory)
        } catch {
            // The cause of an error of the database.
            throw file.failure ?? error
        }
        self.file = file
    }

    /// The error of the server behind an error of the catalog; nil for none.
    package var failure: (any Error)? { file.failure }

    /// The copy of a resource with one image, by the canonical text of its recipe.
    package func copy(key: String, recipe: String) throws(StorageError) -> SeededCopy? {
        try catalog.copies(of: [(key, [recipe])])[0]
    }
}

extension Statement {
    /// Reads a row of ``CacheCatalog/copies(of:)``; nil if its format is unknown.
    fileprivate func seededSource() throws -> (ResourceValidation, SourceImage)? {
        let largest = 1 << 31
        guard let format = ImageFormat(rawValue: try text(19)), try count(20) < largest,
            try count(21) < largest, try count(22) <= ContentFile.largestSize
        else { return nil }
        let validation = try self.validation(from: 1)
        var placeholder: Placeholder?
        if !isNull(23) {
            // The image is taken without an impossible colour.
            let colour = try optionalInteger(24).flatMap {
                RGBColor(number: Int(truncatingIfNeeded: $0))
            }
            placeholder = Placeholder(thumbHash: try thumbHash(23), colour: colour)
        }
        return (
            validation,
            SourceImage(
                digest: try digest(18), format: format, widthInPixels: try count(20),
                heightInPixels: try count(21), size: ByteCount(try count(22)),
                placeholder: placeholder)
        )
    }
}

extension StoredImage {
    /// Whether a decoder can have made it.
    fileprivate var isPossible: Bool {
        widthInPixels < 1 << 31 && heightInPixels < 1 << 31
            && (1...ContentFile.largestSize).contains(size.bytes)
    }
}
