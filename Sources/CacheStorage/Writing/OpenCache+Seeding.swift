package import PrefetchModel

extension OpenCache {
    /// Stores images outside a run: commits the files that `place` stores and pins together with
    /// the rows that it returns. The names of `variants` are recorded as in a run. After an error
    /// nothing of the images is left, as far as the disk allows. Since no run is logged, a property
    /// marks the operation. After a kill, the next run looks for files without a row.
    package func seed(
        _ variants: [RequestedVariant], at now: Timestamp,
        _ place: () throws(StorageError) -> [ImageChange]
    ) throws(StorageError) {
        // Removes the leftovers of a killed run, which could collide with the new files.
        try log.removeOrphans(scansContent: false)
        let ownsNote = try database.write("noting names") { database in
            try VariantNames.note(variants, in: database)
            return try Schema.Property.noteUnfinishedRemoval(at: now, in: database)
        }
        do {
            // Must reach the disk before the first file.
            try database.synchronizeLog()
            let rows = try place()
            let writer = try MetadataWriter(self, run: 0, configuration: .init())
            for row in rows { writer.enqueue(.image(row), token: nil) }
            writer.finish()
            try writer.run { _ in }
            // A complete body makes a partial download useless.
            for row in rows { try partials.discard(key: row.key) }
        } catch {
            tidy()
            throw error
        }
        if ownsNote { try database.endRemoval(in: content) }
    }

    /// Removes files without rows, which would keep a full disk full.
    private func tidy() {
        do {
            // A power cut must not restore removed rows.
            try database.synchronizeLog()
            try log.removeOrphans(scansContent: true)
        } catch {
            // The next run tries again.
        }
    }
}
