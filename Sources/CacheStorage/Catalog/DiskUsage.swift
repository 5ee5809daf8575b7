package import PrefetchModel
internal import SQLite

/// What the content files of a cache take on the disk.
package struct DiskUsage: Hashable, Sendable {
    package var files: Int
    /// Of ``blockSize`` bytes. ext4, XFS, btrfs and tmpfs give a file whole ones of these.
    package var blocks: Int

    package static let blockSize = 4096

    package var size: ByteCount { ByteCount(max(0, blocks) * DiskUsage.blockSize) }

    /// From totals that are kept with each change: nothing is summed up.
    static func read(in database: Connection) throws -> DiskUsage {
        try Statement(database, sql: "SELECT files, blocks FROM usage")
            .first { DiskUsage(clamping: try $0.count(0), blocks: try $0.count(1)) }
            ?? DiskUsage(files: 0, blocks: 0)
    }

    /// More than any disk has: what damaged rows say is cut to it, so that sums of a few are numbers.
    private static let most = 1 << 48

    init(clamping files: Int, blocks: Int) {
        self.init(files: min(files, DiskUsage.most), blocks: min(blocks, DiskUsage.most))
    }

    init(files: Int, blocks: Int) {
        self.files = files
        self.blocks = blocks
    }

    static func blocks(of size: ByteCount) -> Int {
        min(size.bytes, most) / blockSize + (size.bytes % blockSize == 0 ? 0 : 1)
    }
}

extension CacheDatabase {
    /// What the content files take that rows name.
    func usage() throws(StorageError) -> DiskUsage {
        try read("summing up") { try DiskUsage.read(in: $0) }
    }
}
