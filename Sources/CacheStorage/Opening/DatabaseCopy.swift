import Glibc
package import PrefetchModel
internal import SQLite

/// A checked copy of a cache's database. Its file lives with the last reference; thread-safe.
package final class DatabaseCopy: Sendable {
    private static let name = "tmp/copy.sqlite"

    private let directory: CacheDirectory
    private let file: FileDescriptor
    package let size: ByteCount
    package let contentFiles: ContentFiles

    /// Copies the database of a cache held by this process; nil soon after `isStopped` is true.
    package static func make(
        of directory: CacheDirectory, isStopped: () -> Bool
    ) throws(StorageError) -> DatabaseCopy? {
        let path = directory.path(of: name)
        try directory.removeDatabase(name)
        try directory.makeFile(name)
        // The copy is read through its open file. The next run removes temporary files.
        defer { try? directory.removeDatabase(name) }
        guard try directory.copyDatabase(to: name, isStopped: isStopped) else { return nil }
        guard let file = FileDescriptor.reading(name, in: directory.handle) else {
            throw .system("open", path)
        }
        return try StorageError.converting("reading", path) {
            try DatabaseCopy(directory, file, path)
        }
    }

    private init(_ directory: CacheDirectory, _ file: FileDescriptor, _ path: String) throws {
        self.directory = directory
        self.file = file
        guard let status = file.status else { throw StorageError.system("stat", path) }
        size = ByteCount(status.size)
        contentFiles = try ContentFiles(Connection(path: path, access: .immutable), path: path)
    }

    package func withFile<Result, Failure: Error>(
        _ body: (Int32) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        defer { withExtendedLifetime(file) {} }
        return try body(file.number)
    }

    /// Calls `body` with an open content file; nil if it is missing or has another size.
    package func withContent<Result, Failure: Error>(
        _ content: ContentFile, _ body: (Int32) throws(Failure) -> Result
    ) throws(Failure) -> Result? {
        guard let file = FileDescriptor.reading(content.relativePath, in: directory.handle),
            let status = file.status, status.isFile, status.size == content.size.bytes
        else { return nil }
        defer { withExtendedLifetime(file) {} }
        return try body(file.number)
    }
}
