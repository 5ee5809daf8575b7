package import PrefetchModel
internal import SQLite

/// The memory of a run that found no room for a listed image, and nothing to evict: without it,
/// each run would download the rest of the list again.
package struct FullCache: Hashable, Sendable {
    /// The disk space of the smallest image without room.
    package var needed: ByteCount
    /// The new images that the next probe passes over: they found no room before.
    package var probes: Int

    package init(needed: ByteCount, probes: Int) {
        self.needed = needed
        self.probes = probes
    }
}

extension OpenCache {
    /// Returns the memory of the last run with a size limit, if it still holds; nil if `limit` now
    /// leaves room for that image, or images that are not in `listed` can be evicted. `listed` is
    /// nil for lists that are not whole, with which nothing is evicted.
    package func fullness(
        within limit: ByteCount, listed: ResourceSet?
    ) throws(StorageError) -> FullCache? {
        try database.read("reading properties") { database in
            guard let full = try FullCache.stored(in: database) else { return nil }
            let room = limit.bytes - (try DiskUsage.read(in: database)).size.bytes
            if room >= full.needed.bytes { return nil }
            let resources = try database.first("SELECT resources FROM usage") { try $0.count(0) }
            if let listed, resources ?? 0 > listed.count { return nil }
            return full
        }
    }

    /// Stores the memory for the next run. Most runs change nothing.
    package func note(_ full: FullCache?) throws(StorageError) {
        let stored = try database.read("reading properties") { try FullCache.stored(in: $0) }
        guard full != stored else { return }
        try database.write("setting a property") { database in
            if let full {
                try Schema.Property.fullNeeds.set(to: Int64(full.needed.bytes), in: database)
                try Schema.Property.fullProbes.set(to: Int64(full.probes), in: database)
            } else {
                try Schema.Property.fullNeeds.remove(in: database)
                try Schema.Property.fullProbes.remove(in: database)
            }
        }
    }
}

extension FullCache {
    fileprivate static func stored(in database: Connection) throws -> FullCache? {
        guard let needed = try Schema.Property.fullNeeds.value(in: database) else { return nil }
        let probes = try Schema.Property.fullProbes.value(in: database) ?? 0
        // A damaged row may hold any value.
        return FullCache(
            needed: ByteCount(Int(max(0, needed))), probes: Int(min(max(0, probes), 1 << 30)))
    }
}
