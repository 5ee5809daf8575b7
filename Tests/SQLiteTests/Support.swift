import Foundation
import SQLite
import Testing

/// A temporary folder for a test's database, removed with its last reference.
final class DatabaseFolder: Sendable {
    let path: String
    var database: String { path + "/a #1 % ?.sqlite" }

    init() throws {
        path = NSTemporaryDirectory() + "sqlite-tests-" + UUID().uuidString
        try FileManager.default.createDirectory(
            atPath: path, withIntermediateDirectories: false,
            attributes: [.posixPermissions: 0o700])
    }

    deinit {
        try? FileManager.default.removeItem(atPath: path)
    }

    func connect(
        _ access: Connection.FileAccess = .readWrite, busyTimeout: Duration = .zero
    ) throws -> Connection {
        try Connection(path: database, access: access, busyTimeout: busyTimeout)
    }

    func contains(_ suffix: String) -> Bool {
        FileManager.default.fileExists(atPath: database + suffix)
    }
}

extension Connection {
    /// The integers in the first column.
    func integers(_ sql: String) throws -> [Int64] {
        try Statement(self, sql: sql).all([]) { try $0.integer(0) }
    }
}

/// Steps the statement and checks whether there is a row. (`#expect` would copy the statement.)
func expectRow(
    _ statement: borrowing Statement, isThere: Bool = true,
    at location: SourceLocation = #_sourceLocation
) throws {
    let isFound = try statement.step()
    #expect(isFound == isThere, sourceLocation: location)
}
