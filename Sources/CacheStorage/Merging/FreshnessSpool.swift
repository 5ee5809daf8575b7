import Glibc
import Hashing
import PrefetchModel
internal import SQLite

/// The values that the rows of one image share.
struct SpooledImage {
    let key: KeyFingerprint
    let resource: Int64
    let validatedAt: Int64
    let expiresAt: Int64
    let vary: VaryFingerprint?
}

/// Rows of `freshness` in a file, until they are inserted in the order of their fingerprints. These
/// are random, so each row would visit another page. The rows are distributed over 256 parts by
/// their first byte and sorted part by part; each takes 56 bytes of disk space.
final class FreshnessSpool {
    private struct SpooledRow {
        var fingerprint: Int64
        var lower: Int64
        var resource: Int64
        var validatedAt: Int64
        var expiresAt: Int64
        var vary: Int64
        /// `freshness.superseded`, and in bit 8 whether `vary` is NULL.
        var marks: Int64
    }

    private static let parts = 256
    /// Rows of a part in memory: 56 KiB.
    private static let rowsInMemory = 1024

    private let file: FileDescriptor
    private let path: String
    private let hasher = SHA256Hasher()
    private var recipes: [[UInt8]: RecipeFingerprint] = [:]
    private var last: (recipe: [UInt8], fingerprint: RecipeFingerprint)?
    private var buffers = [[SpooledRow]](repeating: [], count: parts)
    /// The blocks of each part in the file, by their numbers.
    private var blocks = [[Int]](repeating: [], count: parts)
    private var blockCount = 0

    init(in directory: CacheDirectory) throws(StorageError) {
        let name = "tmp/freshness"
        path = directory.path(of: name)
        try directory.remove(name)
        let number = openat(
            directory.handle.number, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
            0o600)
        guard number >= 0 else { throw .system("open", path) }
        file = FileDescriptor(number)
        try directory.remove(name)
    }

    func image(of cursor: ResourceCursor, as resource: Int64) throws -> SpooledImage {
        let columns = cursor.freshnessColumns
        return try cursor.withRow { row in
            SpooledImage(
                key: cursor.keyFingerprint(by: hasher), resource: resource,
                validatedAt: try row.integer(columns.validated),
                expiresAt: try row.integer(columns.expires),
                vary: try row.optionalText(columns.vary).map {
                    VaryFingerprint($0, hasher: hasher)
                })
        }
    }

    func add(
        _ image: SpooledImage, recipe: UnsafeRawBufferPointer, mark: Int64
    ) throws(StorageError) {
        let fingerprint = VariantFingerprint(image.key, self.fingerprint(of: recipe))
        // Signed, as the table sorts them.
        let part = Int(fingerprint.upper >> 56) + FreshnessSpool.parts / 2
        buffers[part].append(
            SpooledRow(
                fingerprint: fingerprint.upper, lower: fingerprint.lower,
                resource: image.resource, validatedAt: image.validatedAt,
                expiresAt: image.expiresAt, vary: image.vary?.value ?? 0,
                marks: mark | (image.vary == nil ? 256 : 0)))
        if buffers[part].count == FreshnessSpool.rowsInMemory { try writeBlock(of: part) }
    }

    private func fingerprint(of recipe: UnsafeRawBufferPointer) -> RecipeFingerprint {
        if let last, last.recipe.elementsEqual(recipe) { return last.fingerprint }
        let bytes = Array(recipe)
        let fingerprint =
            recipes[bytes]
            ?? RecipeFingerprint(String(decoding: recipe, as: UTF8.self), hasher: hasher)
        recipes[bytes] = fingerprint
        last = (bytes, fingerprint)
        return fingerprint
    }

    private func writeBlock(of part: Int) throws(StorageError) {
        let size = FreshnessSpool.rowsInMemory * MemoryLayout<SpooledRow>.stride
        let offset = off_t(blockCount * size)
        let written = buffers[part].withUnsafeBytes {
            pwrite(file.number, $0.baseAddress, $0.count, offset)
        }
        guard written == size else {
            if written >= 0 { errno = ENOSPC }
            throw .system("write", path)
        }
        blocks[part].append(blockCount)
        blockCount += 1
        buffers[part].removeAll(keepingCapacity: true)
    }

    /// Inserts all rows; of two with one fingerprint, that of the smaller lower half.
    func insertAll(into target: Connection) throws {
        let insertion = try target.prepare(Schema.freshnessInsertion)
        for part in 0..<FreshnessSpool.parts {
            var rows = try rows(of: part)
            rows.sort { ($0.fingerprint, $0.lower) < ($1.fingerprint, $1.lower) }
            for row in rows {
                try insertion.execute(
                    .integer(row.fingerprint), .integer(row.lower), .integer(row.resource),
                    .integer(row.validatedAt), .integer(row.expiresAt),
                    row.marks & 256 == 0 ? .integer(row.vary) : .null, .integer(row.marks & 255))
            }
        }
    }

    private func rows(of part: Int) throws(StorageError) -> [SpooledRow] {
        let count = FreshnessSpool.rowsInMemory
        var rows: [SpooledRow] = []
        rows.reserveCapacity(blocks[part].count * count + buffers[part].count)
        for block in blocks[part] {
            var code: Int32 = 0
            let size = count * MemoryLayout<SpooledRow>.stride
            let read = [SpooledRow](unsafeUninitializedCapacity: count) { buffer, filled in
                let bytes = pread(file.number, buffer.baseAddress, size, off_t(block * size))
                filled = bytes == size ? count : 0
                code = bytes == size ? 0 : bytes < 0 ? errno : EIO
            }
            guard code == 0 else {
                errno = code
                throw .system("read", path)
            }
            rows += read
        }
        rows += buffers[part]
        buffers[part] = []
        return rows
    }
}
