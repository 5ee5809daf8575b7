import ArgumentParser
import CacheStorage
import Glibc
import PrefetchModel

/// Flags of the commands that change the cache outside a run.
struct ChangeOptions: ParsableArguments {
    @OptionGroup var cache: CacheOptions

    @Option(
        help: ArgumentHelp(
            "If another process holds the cache: fail (exit 75), wait, or wait=DURATION.",
            valueName: "what"))
    var lock: LockArgument = .fail

    func validate() throws {
        // Exit status 0 would claim a change that wasn't made.
        if lock == .skip { throw ValidationError("--lock takes fail, wait or wait=DURATION here") }
    }

    /// Locks the cache, changes it, and makes the change durable. Creates the cache if `creates`.
    ///
    /// - Throws: also if another run holds the cache, or, without `creates`, if there is none.
    func change<Value>(
        creates: Bool = false, _ work: (OpenCache) throws -> Value
    ) throws -> Value {
        let path = try cache.path()
        try OpenFiles.require(CacheOptions.descriptors)
        return try carryOut(work, path: path, creates: creates)
    }

    /// Like ``change(creates:_:)``, for work that frees space.
    ///
    /// A full disk has no room for the database's log either, so the snapshot is removed; a later
    /// run makes another. Work that `mayRepeat` is started again even if a part of it was done.
    func changeMakingRoom<Value>(
        mayRepeat: Bool, _ work: (OpenCache) throws -> Value
    ) throws -> Value {
        let path = try cache.path()
        try OpenFiles.require(CacheOptions.descriptors)
        var hasBegun = false
        do {
            return try carryOut(
                {
                    hasBegun = true
                    return try work($0)
                }, path: path, creates: false)
        } catch let error as StorageError where error.isDiskFull && (mayRepeat || !hasBegun) {
            guard OpenCache.removeSnapshot(path: path) else { throw error }
            StandardError.write(
                "prefetch: \(path): disk is full; removed the database snapshot to make room"
            )
            return try carryOut(work, path: path, creates: false)
        }
    }

    private func carryOut<Value>(
        _ work: (OpenCache) throws -> Value, path: String, creates: Bool
    ) throws -> Value {
        let held = HeldCache(path: path, lock: lock, isQuiet: false)
        let opened = try held.open(hint: "--lock wait waits for it") {
            creates
                ? try OpenCache.open(path: path, waiting: $0, whenHeld: $1)
                : try OpenCache.openExisting(path: path, waiting: $0, whenHeld: $1)
        }
        let result = Result { try work(opened) }
        // Also after a failure: a killed run's leftovers must be synced before they are moved.
        try opened.synchronize()
        return try result.get()
    }
}
