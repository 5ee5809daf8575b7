import Threading

/// Removes content files on a thread of its own, while SQLite removes the next batch of rows.
final class FileRemoval {
    struct RemovedFiles {
        var files = 0
        var bytes = 0
    }

    private let content: ContentStore
    private var pending:
        (thread: OwnedThread?, outcome: Monitor<Result<RemovedFiles, StorageError>>)?

    /// Smaller batches are not worth a thread.
    private static let fewFiles = 32

    init(of content: ContentStore) { self.content = content }

    deinit { pending?.thread?.join() }

    /// Starts removing files that no row names any more. Call only if nothing is pending.
    func begin(_ files: [NamedFile]) {
        precondition(pending == nil, "the files of the last batch are still being removed")
        let outcome = Monitor<Result<RemovedFiles, StorageError>>(.success(RemovedFiles()))
        let work: @Sendable () -> Void = { [content] in
            let result = Result { () throws(StorageError) in
                try FileRemoval.remove(files, from: content)
            }
            outcome.withLock { $0 = result }
        }
        var thread: OwnedThread?
        if files.count > FileRemoval.fewFiles {
            // Without a free thread, this one removes the files.
            thread = try? OwnedThread(name: "file removal", work)
        }
        if thread == nil { work() }
        pending = (thread, outcome)
    }

    /// Waits for the pending files. Returns the files that existed and were removed; nil if nothing
    /// was pending.
    ///
    /// - Throws: when a file could not be removed; the following files remain.
    func finish() throws(StorageError) -> RemovedFiles? {
        guard let (thread, outcome) = pending else { return nil }
        thread?.join()
        pending = nil
        return try outcome.withLock { $0 }.get()
    }

    private static func remove(
        _ files: [NamedFile], from content: ContentStore
    ) throws(StorageError) -> RemovedFiles {
        var removed = RemovedFiles()
        for file in files {
            guard let format = file.format, try content.remove(file.digest, format: format) else {
                continue
            }
            removed.files += 1
            removed.bytes &+= file.bytes
        }
        return removed
    }
}
