package import PrefetchModel

extension OpenCache {
    /// Stores an image outside a run: what `place` puts in place is committed with its row.
    ///
    /// No row of a run says that this is going on, so a property does: after a kill in between, the next run looks for
    /// files without a row.
    ///
    /// - Parameters:
    ///   - variants: that are stored; what they are called is noted as for a run.
    ///   - now: the wall clock.
    ///   - place: stores the files by ``content``, which pins them, and returns the row that names them.
    /// - Throws: when the cache cannot be written; then nothing of the image is left, as far as the disk allows.
    package func seed(
        _ variants: [RequestedVariant], at now: Timestamp,
        _ place: () throws(StorageError) -> ImageRow
    ) throws(StorageError) {
        // Left by a run that was killed; files on their way to the content would meet them.
        try log.collectStrays(scansContent: false)
        let ownsNote = try database.write("noting names") { database in
            try VariantNames.note(variants, in: database)
            return try Schema.Property.noteUnfinishedRemoval(at: now, in: database)
        }
        do throws(StorageError) {
            // Before the first file.
            try database.synchronizeLog()
            let row = try place()
            let writer = try MetadataWriter(self, run: 0, configuration: .init())
            writer.enqueue(.image(row), token: nil)
            writer.finish()
            try writer.run { _ in }
            // A whole body is there: what broke off of another is of no use.
            try partials.discard(key: row.key)
        } catch {
            tidy()
            throw error
        }
        if ownsNote { try database.endRemoval(in: content) }
    }

    /// Removes files whose rows could not be written, so that a full disk is not left fuller than it was.
    private func tidy() {
        do throws(StorageError) {
            // What has lost its row must not come back by a power cut.
            try database.synchronizeLog()
            try log.collectStrays(scansContent: true)
        } catch {
            // The next run tries again.
        }
    }
}
