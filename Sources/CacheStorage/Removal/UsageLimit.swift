import PrefetchModel

/// Limits of content files and of blocks on the disk; nil for none.
struct UsageLimit {
    var files: Int?
    var blocks: Int?

    /// The lower of each limit.
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

    /// The part of the usage above the limits.
    func excess(of usage: DiskUsage) -> DiskUsage {
        DiskUsage(
            files: files.map { max(0, usage.files - $0) } ?? 0,
            blocks: blocks.map { max(0, usage.blocks - $0) } ?? 0)
    }
}
