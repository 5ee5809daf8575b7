import Threading

/// Removes content files on a thread of its own, while the rows of the next ones are removed: the one is the
/// kernel's work, the other SQLite's. For one thread.
final class FileRemoval {
    struct Removed {
        var files = 0
        var bytes = 0
    }

    private let content: ContentStore
    private var pending: (thread: OwnedThread?, outcome: Monitor<Result<Removed, StorageError>>)?

    /// So few are not worth a thread.
    private static let fewFiles = 32

    init(of content: ContentStore) { self.content = content }

    deinit { pending?.thread?.join() }

    /// Begins to remove files that no row names any more. To be called when nothing is pending.
    func begin(_ files: [NamedFile]) {
        precondition(pending == nil, "the files of the last batch are still being removed")
        let outcome = Monitor<Result<Removed, StorageError>>(.success(Removed()))
        let work: @Sendable () -> Void = { [content] in
            let result = Result { () throws(StorageError) in
                try FileRemoval.remove(files, from: content)
            }
            outcome.withLock { $0 = result }
        }
        var thread: OwnedThread?
        if files.count > FileRemoval.fewFiles {
            // Where the system has no room for another, this one does it.
            thread = try? OwnedThread(name: "file removal", work)
        }
        if thread == nil { work() }
        pending = (thread, outcome)
    }

    /// Waits for the files that were begun with last.
    ///
    /// - Returns: which of them were there; nil when nothing was pending.
    /// - Throws: when the disk refused one; those after it are still there.
    func finish() throws(StorageError) -> Removed? {
        guard let (thread, outcome) = pending else { return nil }
        thread?.join()
        pending = nil
        return try outcome.withLock { $0 }.get()
    }

    private static func remove(
        _ files: [NamedFile], from content: ContentStore
    ) throws(StorageError) -> Removed {
        var removed = Removed()
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
