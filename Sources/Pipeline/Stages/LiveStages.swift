import CacheStorage
import EntryLifecycle
import Glibc
import PrefetchModel
import Threading
import Transfers

/// The stages of a real run: threads around libcurl, the codecs and SQLite.
struct LiveStages: StageProviding {
    let configuration: RunConfiguration
    let cache: OpenCache
    let seed: SeedCache?
    let recorder: CacheRecorder
    let mailbox: Mailbox
    let wallClock: @Sendable () -> Timestamp
    /// The resources that must stay; nil before all lists are read.
    let protected = Monitor<ResourceSet?>(nil)

    /// Starts the codec workers and the writer.
    ///
    /// - Throws: when the run has no row, the log of crashes cannot be read, or no threads can be
    ///   started.
    func makeStoring() throws -> StoringStages {
        let run = try recorder.runForStoring()
        // The run's row, before its first file: it tells the next run to look for orphaned files.
        if configuration.storing.durability != .off { try cache.database.synchronizeLog() }
        let crashes = try CrashLog(directory: cache.directory, at: wallClock())
        crashes.begin()
        var writing = MetadataWriter.WriterConfiguration()
        writing.durability = configuration.storing.durability
        writing.maximumSize = configuration.storing.maximumSize
        writing.wallClock = wallClock
        writing.isProtected = { [protected] resource in
            protected.withLock { $0?.contains(resource) ?? true }
        }
        let rows = try MetadataWriter(cache, run: run, configuration: writing)
        recorder.writer = rows
        let images = CodecStage(
            configuration: configuration, cache: cache, seed: seed, crashes: crashes,
            room: rows.room, mailbox: mailbox)
        try images.start(configuration.codecWorkers)
        let writer: WriterThread
        do {
            writer = try WriterThread(rows, mailbox: mailbox)
        } catch {
            images.finish()
            throw error
        }
        return StoringStages(
            images: images, writer: writer, knowsCrashes: !crashes.isEmpty, room: rows.room,
            endCrashLog: { try crashes.end() })
    }

    func protect(_ listed: ResourceSet) {
        protected.withLock { $0 = listed }
    }

    func makeTransferring() throws -> any Transferring {
        try TransferThread(
            configuration: configuration.transfers, wallClock: wallClock, mailbox: mailbox)
    }

    func makeCopyFinding() throws -> any CopyFinding {
        try CopyStage(configuration: configuration, cache: cache, seed: seed, mailbox: mailbox)
    }
}

private final class TransferThread: Transferring {
    private let loop: TransferLoop
    private let thread: OwnedThread

    init(
        configuration: TransferConfiguration, wallClock: @escaping @Sendable () -> Timestamp,
        mailbox: Mailbox
    ) throws {
        loop = try TransferLoop(configuration: configuration, wallClock: wallClock)
        thread = try OwnedThread(name: "transfers") { [loop] in
            do {
                try loop.run { mailbox.put($0.map(Mailbox.StageEvent.transferred)) }
            } catch {
                mailbox.put(.transfersFailed(error))
            }
        }
    }

    func start(_ requests: [TransferRequest]) { loop.start(requests) }
    func cancelAll() { loop.cancelAll() }

    func finish() {
        loop.stop()
        thread.join()
    }
}

private final class WriterThread: Committing {
    private let writer: MetadataWriter
    private let thread: OwnedThread

    init(_ writer: MetadataWriter, mailbox: Mailbox) throws {
        self.writer = writer
        thread = try OwnedThread(name: "writer") {
            defer { writer.room?.close() }
            do {
                try writer.run { mailbox.put(.committed($0)) }
            } catch {
                mailbox.put(.writerFailed(error))
            }
        }
    }

    func enqueue(_ change: MetadataChange, token: Int?) { writer.enqueue(change, token: token) }
    var backlog: ByteCount { writer.backlog }
    func hurry() { writer.hurry() }

    func finish() {
        writer.finish()
        thread.join()
    }
}
