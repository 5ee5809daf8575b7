package import PrefetchModel
internal import SQLite

/// What the content files of a cache take on the disk.
package struct DiskUsage: Hashable, Sendable {
    package var files: Int
    /// Of ``blockSize`` bytes. ext4, XFS, btrfs and tmpfs give a file whole ones of these.
    package var blocks: Int

    package static let blockSize = 4096

    package var size: ByteCount { ByteCount(blocks * DiskUsage.blockSize) }

    /// From totals that are kept with each change: nothing is summed up.
    static func read(in database: Connection) throws -> DiskUsage {
        try Statement(database, sql: "SELECT files, blocks FROM usage")
            .first { DiskUsage(files: try $0.count(0), blocks: try $0.count(1)) }
            ?? DiskUsage(files: 0, blocks: 0)
    }

    static func blocks(of size: ByteCount) -> Int { (size.bytes + blockSize - 1) / blockSize }
}
