import CacheStorage
import EntryLifecycle
import Glibc
import PrefetchModel
import Threading
import Transfers

/// The stages of a real run: threads around libcurl, the codecs and SQLite.
final class LiveStages: StageProviding {
    private let configuration: RunConfiguration
    private let cache: OpenCache
    private let seed: SeedCache?
    private let recorder: CacheRecorder
    private let mailbox: Mailbox
    private let wallClock: @Sendable () -> Timestamp
    /// The resources that must stay; nil before all lists are read.
    private let protected = Monitor<ResourceSet?>(nil)

    init(
        configuration: RunConfiguration, cache: OpenCache, seed: SeedCache?,
        recorder: CacheRecorder, mailbox: Mailbox, wallClock: @escaping @Sendable () -> Timestamp
    ) {
        self.configuration = configuration
        self.cache = cache
        self.seed = seed
        self.recorder = recorder
        self.mailbox = mailbox
        self.wallClock = wallClock
    }

    /// Starts the codec workers and the writer.
    ///
    /// - Throws: when the run has no row, the log of crashes cannot be read, or no threads can be
    ///   started.
    func makeStoring() throws(FatalError) -> StoringStages {
        let run = try recorder.runForStoring()
        let crashes: CrashLog
        do throws(StorageError) {
            // The run's row, before its first file: it tells the next run to look for orphaned
            // files.
            if configuration.storing.durability != .off { try cache.database.synchronizeLog() }
            crashes = try CrashLog(directory: cache.directory, at: wallClock())
        } catch {
            throw FatalError(error)
        }
        crashes.begin()
        var writing = MetadataWriter.Configuration()
        writing.durability = configuration.storing.durability
        writing.maximumSize = configuration.storing.maximumSize
        writing.wallClock = wallClock
        writing.isProtected = { [protected] resource in
            protected.withLock { $0?.contains(resource) ?? true }
        }
        let rows: MetadataWriter
        do throws(StorageError) {
            rows = try MetadataWriter(cache, run: run, configuration: writing)
        } catch {
            throw FatalError(error)
        }
        recorder.writer = rows
        let codecs = CodecStage(
            configuration: configuration, cache: cache, seed: seed, crashes: crashes,
            room: rows.room, mailbox: mailbox)
        let images = try CodecThreads(codecs, count: configuration.codecWorkers)
        let writer: WriterThread
        do throws(FatalError) {
            writer = try WriterThread(rows, mailbox: mailbox)
        } catch {
            images.finish()
            throw error
        }
        return StoringStages(
            images: images, writer: writer, knowsCrashes: !crashes.isEmpty, room: rows.room,
            endCrashLog: { () throws(FatalError) in
                do throws(StorageError) {
                    try crashes.end()
                } catch {
                    throw FatalError(error)
                }
            })
    }

    func protect(_ listed: ResourceSet) {
        protected.withLock { $0 = listed }
    }

    func makeTransferring() throws(FatalError) -> any Transferring {
        try TransferThread(
            configuration: configuration.transfers, wallClock: wallClock, mailbox: mailbox)
    }

    func makeCopyFinding() throws(FatalError) -> any CopyFinding {
        try CopyThread(
            CopyStage(configuration: configuration, cache: cache, seed: seed, mailbox: mailbox))
    }
}

/// The transfer loop on its thread.
private final class TransferThread: Transferring {
    private let loop: TransferLoop
    private let thread: OwnedThread

    init(
        configuration: TransferConfiguration, wallClock: @escaping @Sendable () -> Timestamp,
        mailbox: Mailbox
    ) throws(FatalError) {
        do throws(UserError) {
            loop = try TransferLoop(configuration: configuration, wallClock: wallClock)
        } catch {
            throw FatalError(error)
        }
        thread = try OwnedThread.forRun(name: "transfers") { [loop] in
            do throws(UserError) {
                try loop.run { mailbox.put($0.map(Mailbox.Event.transferred)) }
            } catch {
                mailbox.put(.transfersFailed(FatalError(error)))
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

/// The codec workers on their threads.
private final class CodecThreads: ImageProcessing {
    private let stage: CodecStage
    private let threads: [OwnedThread]

    /// Starts the workers, or fewer where the system has no room for more.
    init(_ stage: CodecStage, count: Int) throws(FatalError) {
        self.stage = stage
        var threads: [OwnedThread] = []
        for number in 0..<count {
            do throws(FatalError) {
                threads.append(try OwnedThread.forRun(name: "codec \(number)") { stage.work() })
            } catch {
                guard !threads.isEmpty else { throw error }
                break
            }
        }
        self.threads = threads
    }

    var workers: Int { threads.count }
    func enqueue(_ job: CodecJob) { stage.enqueue(job) }
    func dropWaiting() -> [Int] { stage.dropWaiting() }
    func cancel() { stage.cancel() }

    func finish() {
        stage.finish()
        for thread in threads { thread.join() }
        stage.filters.finish()
    }
}

/// The writer on its thread.
private final class WriterThread: Committing {
    private let writer: MetadataWriter
    private let thread: OwnedThread

    init(_ writer: MetadataWriter, mailbox: Mailbox) throws(FatalError) {
        self.writer = writer
        thread = try OwnedThread.forRun(name: "writer") {
            defer { writer.room?.close() }
            do throws(StorageError) {
                try writer.run { mailbox.put(.committed($0)) }
            } catch {
                mailbox.put(.writerFailed(FatalError(error)))
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

/// The look-ups on their thread.
private final class CopyThread: CopyFinding {
    private let stage: CopyStage
    private let thread: OwnedThread

    init(_ stage: CopyStage) throws(FatalError) {
        self.stage = stage
        thread = try OwnedThread.forRun(name: "copies") { stage.work() }
    }

    func find(_ requests: [CopyRequest]) { stage.enqueue(requests) }

    func finish() {
        stage.finish()
        thread.join()
    }
}

extension OwnedThread {
    /// Starts a thread that a run cannot do without.
    ///
    /// - Throws: when the system has no room for another thread.
    static func forRun(
        name: String, _ body: @escaping @Sendable () -> Void
    ) throws(FatalError) -> OwnedThread {
        do throws(UserError) {
            return try OwnedThread(name: name, body)
        } catch {
            throw FatalError(error)
        }
    }
}
