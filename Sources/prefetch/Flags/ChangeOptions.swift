import ArgumentParser
import CacheStorage
import PrefetchModel

/// Flags of the commands that change the cache outside a run.
struct ChangeOptions: ParsableArguments {
    @OptionGroup var cache: CacheOptions

    @Option(
        help: .value(
            "what", "If another process holds the cache: fail (exit 75), wait, or wait=DURATION."))
    var lock: LockArgument = .fail

    func validate() throws {
        // Exit status 0 would claim a change that wasn't made.
        if lock == .skip { throw ValidationError("--lock takes fail, wait or wait=DURATION here") }
    }

    /// Locks the cache, changes it, and makes the change durable. Creates the cache if `creates`.
    ///
    /// - Throws: also if another run holds the cache, or, without `creates`, if it is missing.
    func change<Value>(creates: Bool = false, _ work: (OpenCache) throws -> Value) throws -> Value {
        let path = try cache.path()
        try OpenFiles.require(CacheOptions.descriptors)
        let held = HeldCache(path: path, lock: lock, isQuiet: false)
        let opened = try held.open(hint: "--lock wait waits for it") {
            try OpenCache.open(path: path, creates: creates, waiting: $0, whenHeld: $1)
        }
        let result = Result { try work(opened) }
        // Also after a failure: a killed run's leftovers must be synced before they are moved.
        try opened.synchronize()
        return try result.get()
    }

    /// Like ``change(creates:_:)``, for work that frees space.
    ///
    /// A full disk has no room for the database's log either, so the snapshot is removed; a later
    /// run makes another. Work that `mayRepeat` is started again even if a part of it was done.
    func changeMakingRoom<Value>(
        mayRepeat: Bool, _ work: (OpenCache) throws -> Value
    ) throws -> Value {
        let path = try cache.path()
        var hasBegun = false
        do {
            return try change {
                hasBegun = true
                return try work($0)
            }
        } catch let error as StorageError where error.isDiskFull && (mayRepeat || !hasBegun) {
            guard OpenCache.removeSnapshot(path: path) else { throw error }
            StandardError.write(
                "prefetch: \(path): disk is full; removed the database snapshot to make room"
            )
            return try change(work)
        }
    }
}

/// The reaction to a cache that another run holds: `fail`, `skip`, `wait` or `wait=DURATION`.
enum LockArgument: ExpressibleByArgument, Equatable {
    case fail
    case skip
    case wait(Duration?)

    init?(argument: String) {
        switch argument {
        case "fail": self = .fail
        case "skip": self = .skip
        case "wait": self = .wait(nil)
        default:
            guard argument.hasPrefix("wait="),
                let limit = Duration(quantity: String(argument.dropFirst(5)))
            else { return nil }
            self = .wait(limit)
        }
    }

    var defaultValueDescription: String {
        switch self {
        case .fail: "fail"
        case .skip: "skip"
        case .wait(nil): "wait"
        case .wait(let limit?): "wait=\(limit.quantityDescription)"
        }
    }

    /// Returns the same, waiting at most for `time`; nil for any time.
    func limited(to time: Duration?) -> LockArgument {
        guard case .wait(let limit) = self, let time else { return self }
        return .wait(min(limit ?? time, max(.zero, time)))
    }

    var waiting: OpenCache.LockWaiting {
        if case .wait(let limit) = self { .upTo(limit) } else { .none }
    }
}
