import ArgumentParser
import CacheStorage
import Glibc

/// Flags of the commands that change the cache outside a run.
struct ChangeOptions: ParsableArguments {
    @OptionGroup var cache: CacheOptions

    @Option(
        help: ArgumentHelp(
            "What to do while a run holds the cache: fail, wait or wait=DURATION.",
            valueName: "what"))
    var lock: LockArgument = .fail

    func validate() throws {
        // A change that was left out would look like one that was made.
        if lock == .skip { throw ValidationError("--lock takes fail, wait or wait=DURATION here") }
    }

    /// Locks the cache, changes it, and makes the change durable. With `makes` a cache is made where there is none.
    ///
    /// - Throws: with `missingStatus` where there is no cache and none is made; with 75 when another
    ///   run holds it.
    func change<Value>(
        missingStatus: Int32 = 1, makes: Bool = false, _ work: (OpenCache) throws -> Value
    ) throws -> Value {
        let path = try cache.path()
        try OpenFiles.require(CacheOptions.descriptors)
        do {
            return try carryOut(work, path: path, makes: makes)
        } catch let error as StorageError {
            throw CommandFailure(error, missingStatus: missingStatus)
        }
    }

    /// The same for work that makes room: a full disk has none for the database's log either, so the snapshot of the
    /// database goes first, which is there to be made again. Work that `mayRepeat` is begun again even after a part of it.
    func changeMakingRoom<Value>(
        mayRepeat: Bool, _ work: (OpenCache) throws -> Value
    ) throws -> Value {
        let path = try cache.path()
        try OpenFiles.require(CacheOptions.descriptors)
        do {
            var hasBegun = false
            do {
                return try carryOut(
                    {
                        hasBegun = true
                        return try work($0)
                    }, path: path, makes: false)
            } catch let error as StorageError where error.isDiskFull && (mayRepeat || !hasBegun) {
                guard OpenCache.removeSnapshot(path: path) else { throw error }
                StandardError.write(
                    "prefetch: \(path): the disk is full, so the snapshot of the database has been removed first"
                )
                return try carryOut(work, path: path, makes: false)
            }
        } catch let error as StorageError {
            throw CommandFailure(error, missingStatus: 1)
        }
    }

    private func carryOut<Value>(
        _ work: (OpenCache) throws -> Value, path: String, makes: Bool
    ) throws -> Value {
        let held = HeldCache(path: path, lock: lock, isQuiet: false)
        let opened = try held.open(hint: "--lock wait waits for it") {
            makes
                ? try OpenCache.open(path: path, waiting: $0, whenHeld: $1)
                : try OpenCache.openExisting(path: path, waiting: $0, whenHeld: $1)
        }
        // Only `skip` gives none, which is refused here.
        guard let opened else { throw CommandFailure.unusable("\(path): was not opened") }
        let result = Result { try work(opened) }
        // Also after a failure: what a killed run left behind must not be moved unsynced.
        try opened.synchronize()
        return try result.get()
    }
}

extension LockArgument {
    /// How long the lock is waited for.
    var waiting: OpenCache.Waiting {
        if case .wait(let limit) = self { .upTo(limit) } else { .none }
    }
}
