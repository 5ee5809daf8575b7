package import PrefetchModel
internal import SQLite

/// The memory of a run that found no room for a listed image, and nothing to evict: without it,
/// each run would download the rest of the list again. It stays until a run stores all.
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

/// A full cache at the start of the next run.
package struct CacheFullness: Hashable, Sendable {
    package var memory: FullCache
    /// The number of images like the smallest without room that have room now; nil for any number,
    /// because images that are not listed can be evicted.
    package var fitting: Int?

    /// `room`: the free bytes, negative above the limit; nil if images can be evicted.
    package init(_ memory: FullCache, room: Int?) {
        self.memory = memory
        fitting = room.map { max(0, $0) / max(1, memory.needed.bytes) }
    }
}

extension CacheDatabase {
    /// Returns the memory of the last run with a size limit; nil if that was not full. `listed` is
    /// nil for lists that are not whole, with which nothing is evicted.
    func fullness(
        within limit: ByteCount, listed: ResourceSet?
    ) throws(StorageError) -> CacheFullness? {
        try read("reading properties") { database in
            guard let full = try FullCache.stored(in: database) else { return nil }
            if let listed, try FullCache.mayEvict(sparing: listed, in: database) {
                return CacheFullness(full, room: nil)
            }
            let room = limit.bytes - (try DiskUsage.read(in: database)).size.bytes
            return CacheFullness(full, room: room)
        }
    }
}

extension CacheCatalog {
    package func fullness(
        within limit: ByteCount, listed: ResourceSet?
    ) throws(StorageError) -> CacheFullness? {
        try database.fullness(within: limit, listed: listed)
    }
}

extension OpenCache {
    package func fullness(
        within limit: ByteCount, listed: ResourceSet?
    ) throws(StorageError) -> CacheFullness? {
        try database.fullness(within: limit, listed: listed)
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

    /// Whether files can be removed for an image that is not in `listed`. A resource whose files
    /// were lost has a row, and nothing to remove.
    fileprivate static func mayEvict(
        sparing listed: ResourceSet, in database: Connection
    ) throws -> Bool {
        let resources = try database.first("SELECT resources FROM usage") { try $0.count(0) }
        guard resources ?? 0 > listed.count else { return false }
        // Reads the index alone.
        let rows = try database.prepare(
            "SELECT resource_id FROM freshness INDEXED BY freshness_resource_id")
        defer { rows.reset() }
        while try rows.step() {
            if !listed.contains(try rows.integer(0)) { return true }
        }
        return false
    }
}
