import Glibc
import Hashing
import PrefetchModel
internal import SQLite

/// The valid resources of a source in the order of their keys.
final class ResourceCursor {
    let source: MergeSource
    private let appender: RowInsertion
    private let statement: Statement
    let freshnessColumns: (validated: Int32, expires: Int32, vary: Int32)
    private(set) var hasRow = false
    private let columns: (id: Int32, key: Int32)
    private(set) var id: Int64 = 0
    /// The key of the last row, which is compared with that of the next one.
    private var key: [UInt8] = []
    private var isFirst = true

    init(_ source: MergeSource, for appender: RowInsertion) throws {
        self.source = source
        self.appender = appender
        let layout = appender.layout
        columns = (layout["id"], layout["key"])
        freshnessColumns = (layout["validated_at"], layout["expires_at"], layout["vary"])
        statement = try source.rows(of: appender.layout, where: "TRUE ORDER BY key")
        try advance()
    }

    /// Moves to the next valid row. Afterwards ``hasRow`` tells whether there is one.
    ///
    /// - Throws: as ``MergeSource/reading(_:)``, also when the keys are not in order.
    func advance() throws {
        try source.reading {
            while try statement.step() {
                guard try appender.isValid(statement) else {
                    source.invalidRows += 1
                    continue
                }
                let next = try statement.textBytes(columns.key)
                if !isFirst, ResourceCursor.order(next, key) <= 0 {
                    throw SQLiteError(code: .corrupt, message: "keys are not in order")
                }
                isFirst = false
                key.removeAll(keepingCapacity: true)
                key.append(contentsOf: next)
                id = try statement.integer(columns.id)
                hasRow = true
                return
            }
            hasRow = false
        }
    }

    func withRow<Result>(_ body: (borrowing Statement) throws -> Result) rethrows -> Result {
        try body(statement)
    }

    func keyFingerprint(by hasher: borrowing SHA256Hasher) -> KeyFingerprint {
        key.withUnsafeBytes { KeyFingerprint($0, hasher: hasher) }
    }

    /// Compares the current keys as SQLite does: negative if this one is smaller.
    func orderOfKey(_ other: ResourceCursor) -> Int {
        key.withUnsafeBytes { ResourceCursor.order($0, other.key) }
    }

    private static func order(_ left: UnsafeRawBufferPointer, _ right: [UInt8]) -> Int {
        right.withUnsafeBytes { right in
            let count = min(left.count, right.count)
            if count > 0, let left = left.baseAddress, let right = right.baseAddress {
                let order = memcmp(left, right, count)
                if order != 0 { return Int(order) }
            }
            return left.count - right.count
        }
    }
}
