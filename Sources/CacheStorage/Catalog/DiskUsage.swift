package import PrefetchModel
internal import SQLite

package struct DiskUsage: Hashable, Sendable {
    package var files: Int
    /// Blocks of ``blockSize`` bytes: ext4, XFS, btrfs and tmpfs allocate whole ones.
    package var blocks: Int

    package static let blockSize = 4096

    /// The average size of a file in blocks; at least 1.
    var typicalBlocks: Int { files > 0 ? max(1, blocks / files) : 1 }

    package var size: ByteCount { ByteCount(max(0, blocks) * DiskUsage.blockSize) }

    /// Reads the totals that are maintained with each change.
    static func read(in database: Connection) throws -> DiskUsage {
        try database.first("SELECT files, blocks FROM usage") {
            DiskUsage(clamping: try $0.count(0), blocks: try $0.count(1))
        }
            ?? DiskUsage(files: 0, blocks: 0)
    }

    /// Larger than any disk; limits values of damaged rows, so that sums cannot overflow.
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
    func usage() throws(StorageError) -> DiskUsage {
        try read("summing up") { try DiskUsage.read(in: $0) }
    }
}

/// Limits of content files and of blocks on the disk; nil for none.
struct UsageLimit {
    var files: Int?
    var blocks: Int?

    func merging(_ other: UsageLimit) -> UsageLimit {
        UsageLimit(
            files: [files, other.files].compactMap(\.self).min(),
            blocks: [blocks, other.blocks].compactMap(\.self).min())
    }

    func isExceeded(by usage: DiskUsage) -> Bool {
        usage.files > files ?? .max || usage.blocks > blocks ?? .max
    }

    func scaled(by share: Share) -> UsageLimit {
        func scaled(_ limit: Int?) -> Int? {
            limit.map { Int(exactly: (Double($0) * share.fraction).rounded(.down)) ?? $0 }
        }
        return UsageLimit(files: scaled(files), blocks: scaled(blocks))
    }

    func excess(of usage: DiskUsage) -> DiskUsage {
        DiskUsage(
            files: files.map { max(0, usage.files - $0) } ?? 0,
            blocks: blocks.map { max(0, usage.blocks - $0) } ?? 0)
    }
}
