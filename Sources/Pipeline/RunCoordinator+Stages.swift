import CacheStorage
import PrefetchModel
import Threading
import Transfers

/// The threads that decode, store and commit.
struct RunningStages {
    let codecs: CodecStage
    let writer: MetadataWriter
    let crashes: CrashLog
    let codecThreads: [OwnedThread]
    let writerThread: OwnedThread
}

/// The thread that asks origins.
struct RunningTransfers {
    let loop: TransferLoop
    let thread: OwnedThread
}

extension RunCoordinator {
    /// The stages, started when first asked for: a run over a warm list never needs them.
    ///
    /// - Returns: nil when they cannot be started, since the run could not be noted, or what ended
    ///   earlier ones could not be read.
    func runningStages() -> RunningStages? {
        if let stages { return stages }
        guard let logged else {
            // From here on there has to be room.
            if let lackOfRoom { fail(lackOfRoom) }
            return nil
        }
        let crashes: CrashLog
        do throws(StorageError) {
            // The run's beginning, before its first file: it tells the next run to look for files
            // without a row.
            if configuration.durability != .off { try cache.database.synchronizeLog() }
            crashes = try CrashLog(directory: cache.directory, at: wallClock())
        } catch {
            fail(FatalError(error))
            return nil
        }
        crashes.begin()
        var writing = MetadataWriter.Configuration()
        writing.durability = configuration.durability
        let writer = MetadataWriter(cache, run: logged, configuration: writing)
        let codecs = CodecStage(
            configuration: configuration, cache: cache, crashes: crashes, mailbox: mailbox)
        let started: RunningStages
        do throws(ThreadError) {
            let codecThreads = try startCodecs(codecs)
            do throws(ThreadError) {
                started = RunningStages(
                    codecs: codecs, writer: writer, crashes: crashes, codecThreads: codecThreads,
                    writerThread: try start(writer))
            } catch {
                codecs.finish()
                for thread in codecThreads { thread.join() }
                throw error
            }
        } catch {
            fail(FatalError(error))
            return nil
        }
        stages = started
        return started
    }

    /// Starts as many workers as wanted, or fewer where the system has no room for more.
    private func startCodecs(_ codecs: CodecStage) throws(ThreadError) -> [OwnedThread] {
        var threads: [OwnedThread] = []
        for number in 0..<configuration.codecWorkers {
            do throws(ThreadError) {
                threads.append(try OwnedThread(name: "codec \(number)") { codecs.work() })
            } catch {
                if threads.isEmpty { throw error }
                return threads
            }
        }
        return threads
    }

    private func start(_ writer: MetadataWriter) throws(ThreadError) -> OwnedThread {
        try OwnedThread(name: "writer") { [mailbox] in
            do throws(StorageError) {
                try writer.run { mailbox.put(.committed($0)) }
            } catch {
                mailbox.put(.writerFailed(FatalError(error)))
            }
        }
    }

    /// The transfer loop, started when first asked for: setting up libcurl and its TLS library costs
    /// more than a run over a warm list.
    ///
    /// - Returns: nil when it cannot be started, which ends the run.
    func runningTransfers() -> RunningTransfers? {
        if let transfers { return transfers }
        let loop: TransferLoop
        do {
            loop = try TransferLoop(
                configuration: transferSettings, wallClock: wallClock)
        } catch {
            fail(FatalError(message: error.description, hint: nil, reason: .internal))
            return nil
        }
        let thread: OwnedThread
        do throws(ThreadError) {
            thread = try OwnedThread(name: "transfers") { [mailbox] in
                do throws(TransferLoopError) {
                    try loop.run { mailbox.put($0.map(Mailbox.Event.transferred)) }
                } catch {
                    mailbox.put(
                        .transfersFailed(
                            FatalError(message: error.description, hint: nil, reason: .internal)))
                }
            }
        } catch {
            fail(FatalError(error))
            return nil
        }
        let started = RunningTransfers(loop: loop, thread: thread)
        transfers = started
        return started
    }

    /// Ends the threads; every entry has its outcome by now.
    func finishStages() {
        transfers?.loop.stop()
        transfers?.thread.join()
        guard let stages else { return }
        stages.codecs.finish()
        stages.writer.finish()
        for thread in stages.codecThreads { thread.join() }
        do throws(StorageError) {
            try stages.crashes.end()
        } catch {
            fail(FatalError(error))
        }
        stages.writerThread.join()
    }
}
