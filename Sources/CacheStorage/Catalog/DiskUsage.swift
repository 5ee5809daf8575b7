package import PrefetchModel
internal import SQLite

/// The disk space that a cache's content files take.
package struct DiskUsage: Hashable, Sendable {
    package var files: Int
    /// The number of blocks of ``blockSize`` bytes. ext4, XFS, btrfs and tmpfs allocate whole
    /// blocks.
    package var blocks: Int

    package static let blockSize = 4096

    package var size: ByteCount { ByteCount(max(0, blocks) * DiskUsage.blockSize) }

    /// Reads the totals that are maintained with each change.
    static func read(in database: Connection) throws -> DiskUsage {
        try database.first("SELECT files, blocks FROM usage") {
            DiskUsage(clamping: try $0.count(0), blocks: try $0.count(1))
        }
            ?? DiskUsage(files: 0, blocks: 0)
    }

    /// Larger than any disk. Values of damaged rows are clamped to it, so that sums cannot
    /// overflow.
    private static let most = 1 << 48

    static func blocks(of size: ByteCount) -> Int {
        min(size.bytes, most) / blockSize + (size.bytes % blockSize == 0 ? 0 : 1)
    }
}

extension DiskUsage {
    init(clamping files: Int, blocks: Int) {
        self.init(files: min(files, DiskUsage.most), blocks: min(blocks, DiskUsage.most))
    }
}

extension CacheDatabase {
    /// The usage of the content files that rows name.
    func usage() throws(StorageError) -> DiskUsage {
        try read("summing up") { try DiskUsage.read(in: $0) }
    }
}
