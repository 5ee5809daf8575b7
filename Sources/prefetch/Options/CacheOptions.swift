import ArgumentParser
import CacheStorage
import Glibc

/// Flags of every command that uses the cache.
struct CacheOptions: ParsableArguments {
    @Option(
        name: .customLong("cache-dir"),
        help: ArgumentHelp(
            """
            The cache's directory (default: $PREFETCH_CACHE_DIR, else $CACHE_DIRECTORY, which \
            systemd sets, else $XDG_CACHE_HOME/prefetch, else ~/.cache/prefetch).
            """, valueName: "dir"))
    var cacheDirectory: String?

    /// The directory's path, absolute or relative as it was given.
    func path() throws -> String {
        if let cacheDirectory {
            guard !cacheDirectory.isEmpty else {
                throw ValidationError("--cache-dir needs a path")
            }
            return trimmed(cacheDirectory)
        }
        if let path = environment("PREFETCH_CACHE_DIR") { return trimmed(path) }
        // systemd's, for a service with CacheDirectory=; of several the first.
        if let path = environment("CACHE_DIRECTORY")?.prefix(while: { $0 != ":" }), !path.isEmpty {
            return trimmed(String(path))
        }
        // A relative XDG_CACHE_HOME is to be ignored (XDG Base Directory Specification).
        if let base = environment("XDG_CACHE_HOME"), base.hasPrefix("/") {
            return trimmed(base) + "/prefetch"
        }
        guard let home = environment("HOME") ?? CacheOptions.homeOfUser else {
            throw CommandFailure.unusable(
                "there is no HOME to keep a cache in", hint: "name a directory with --cache-dir")
        }
        return trimmed(home) + "/.cache/prefetch"
    }

    /// The directory's path from the root on, symbolic links left as they are.
    func absolutePath() throws -> String {
        let path = try path()
        guard !path.hasPrefix("/") else { return path }
        guard let folder = getcwd(nil, 0) else {
            throw CommandFailure.unusable(
                "cannot tell the current directory: \(String(cString: strerror(errno)))",
                hint: "give --cache-dir as an absolute path")
        }
        defer { free(folder) }
        return trimmed(String(cString: folder)) + "/" + path
    }

    /// What opening and reading a cache, or changing a few rows of it, takes: its folders, lock and
    /// database with log and index, and a file for moments.
    static let descriptors = 9

    /// Opens the cache for reading.
    ///
    /// - Throws: with `missingStatus` where there is no cache, or one that nothing was stored in yet.
    func catalog(missingStatus: Int32 = 2) throws -> CacheCatalog {
        let path = try path()
        try OpenFiles.require(CacheOptions.descriptors)
        do throws(StorageError) {
            return try CacheCatalog(directory: CacheDirectory(path: path, access: .readOnly))
        } catch {
            throw CommandFailure(error, missingStatus: missingStatus)
        }
    }

    /// As the system's list of users has it, for services without `HOME`.
    private static var homeOfUser: String? {
        guard let entry = getpwuid(geteuid()), let path = entry.pointee.pw_dir, path.pointee != 0
        else { return nil }
        return String(cString: path)
    }

    private func trimmed(_ path: String) -> String {
        var path = path
        while path.count > 1, path.hasSuffix("/") { path.removeLast() }
        return path
    }

    private func environment(_ name: String) -> String? {
        guard let value = getenv(name), value.pointee != 0 else { return nil }
        return String(cString: value)
    }
}

extension CommandFailure {
    /// With `missingStatus` where there is no cache.
    init(_ error: StorageError, missingStatus: Int32 = 2) {
        self.init(
            exitStatus: error.code == .missing ? missingStatus : 2, message: error.description,
            hint: error.hint)
    }
}
