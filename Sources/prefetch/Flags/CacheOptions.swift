import ArgumentParser
import CacheStorage
import ConfigurationFiles
import Glibc
import PrefetchModel

/// Flags of every command that uses the cache.
struct CacheOptions: ParsableArguments {
    @OptionGroup var place: Flags<CacheFlags>
    @OptionGroup var configuration: Flags<ConfigurationFlags>

    /// The directory's path, absolute or relative as the user gave it.
    func path() throws -> String {
        if let directory = place.directory {
            guard !directory.isEmpty else { throw ValidationError("--cache-dir needs a path") }
            return trimmed(directory)
        }
        // Set by systemd for a service with CacheDirectory=; the first of several is used.
        if let path = environment("CACHE_DIRECTORY")?.prefix(while: { $0 != ":" }), !path.isEmpty {
            return trimmed(String(path))
        }
        // The XDG Base Directory Specification says to ignore a relative path.
        if let base = environment("XDG_CACHE_HOME"), base.hasPrefix("/") {
            return trimmed(base) + "/prefetch"
        }
        guard let home = HomeDirectory.path else {
            throw UserError(
                "no cache directory: HOME is not set", hint: "name a directory with --cache-dir")
        }
        return trimmed(home) + "/.cache/prefetch"
    }

    /// The directory's absolute path, with symbolic links unresolved.
    func absolutePath() throws -> String {
        let path = try path()
        guard !path.hasPrefix("/") else { return path }
        guard let folder = CurrentFolder.path else {
            throw UserError(
                "current directory: \(String(cString: strerror(errno)))",
                hint: "give --cache-dir as an absolute path")
        }
        return "\(folder)/\(path)"
    }

    /// Descriptors for reading a cache or changing a few rows: folders, lock, database with log and
    /// index, and one short-lived file.
    static let descriptors = 9

    /// Opens the cache for reading.
    ///
    /// - Throws: also if no cache exists or nothing was ever stored in it.
    func catalog() throws -> CacheCatalog {
        let path = try path()
        try OpenFiles.require(CacheOptions.descriptors)
        return try CacheCatalog(directory: CacheDirectory(path: path, access: .readOnly))
    }

    /// Opens the cache like ``catalog()``; nil if none exists or nothing was ever stored in it.
    func existingCatalog() throws -> CacheCatalog? {
        try existing { try CacheCatalog(directory: $0) }
    }

    /// The folder of the cache, without its lock; nil if it is missing.
    func existingDirectory() throws -> CacheDirectory? { try existing { $0 } }

    private func existing<Value>(_ open: (CacheDirectory) throws -> Value) throws -> Value? {
        let path = try path()
        do {
            return try open(CacheDirectory(path: path, access: .readOnly))
        } catch let error as StorageError where error.code == .missing {
            return nil
        }
    }

    private func trimmed(_ path: String) -> String {
        var path = path
        while path.count > 1, path.hasSuffix("/") { path.removeLast() }
        return path
    }
}

struct CacheFlags: FlagRows {
    static let flags = FlagTable(CacheFlags())

    let directory = RunFlag<String?>(
        "cache-dir", value: "dir",
        help: """
            The cache's directory (default: $PREFETCH_CACHE_DIR, else systemd's $CACHE_DIRECTORY, \
            else $XDG_CACHE_HOME/prefetch, else ~/.cache/prefetch).
            """, brief: "where the cache is (default: ~/.cache/prefetch)", inProjects: .refused,
        environment: ["PREFETCH_CACHE_DIR", "CACHE_DIRECTORY"])
}

/// Flags that choose configuration files.
///
/// They are evaluated before the parser runs, by ``ConfigurationChoice``: the files give arguments.
struct ConfigurationFlags: FlagRows {
    static let flags = FlagTable(ConfigurationFlags())

    let file = RunFlag<String?>(
        "config", value: "file",
        help: """
            Read this configuration file instead of ./prefetch.toml, \
            $XDG_CONFIG_HOME/prefetch/config.toml (else ~/.config/prefetch/config.toml) and \
            /etc/prefetch/config.toml; none reads no file (default: $PREFETCH_CONFIG).
            """, isConfigurable: false, environment: ["PREFETCH_CONFIG"])

    let profile = RunFlag<String?>(
        "profile", value: "name",
        help: """
            Also use the table [profile.NAME] of the configuration files (default: \
            $PREFETCH_PROFILE).
            """, isConfigurable: false, environment: ["PREFETCH_PROFILE"])

    let trustsProject = RunFlag<Bool>(
        "trust-project-config",
        help: """
            Let ./prefetch.toml set everything, also files, proxies, credentials and the cache's \
            directory, and belong to another user.
            """, isConfigurable: false)
}

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
