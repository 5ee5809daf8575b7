import ArgumentParser
import CacheStorage
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
        if let path = environment("PREFETCH_CACHE_DIR") { return trimmed(path) }
        // Set by systemd for a service with CacheDirectory=; the first of several is used.
        if let path = environment("CACHE_DIRECTORY")?.prefix(while: { $0 != ":" }), !path.isEmpty {
            return trimmed(String(path))
        }
        // The XDG Base Directory Specification says to ignore a relative path.
        if let base = environment("XDG_CACHE_HOME"), base.hasPrefix("/") {
            return trimmed(base) + "/prefetch"
        }
        guard let home = environment("HOME") ?? CacheOptions.homeOfUser else {
            throw UserError(
                "no cache directory: HOME is not set", hint: "name a directory with --cache-dir")
        }
        return trimmed(home) + "/.cache/prefetch"
    }

    /// The directory's absolute path, with symbolic links unresolved.
    func absolutePath() throws -> String {
        let path = try path()
        guard !path.hasPrefix("/") else { return path }
        guard let folder = getcwd(nil, 0) else {
            throw UserError(
                "current directory: \(String(cString: strerror(errno)))",
                hint: "give --cache-dir as an absolute path")
        }
        defer { free(folder) }
        return trimmed(String(cString: folder)) + "/" + path
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

    /// The folder of the cache, without its lock; nil if there is none.
    func existingDirectory() throws -> CacheDirectory? {
        let path = try path()
        do {
            return try CacheDirectory(path: path, access: .readOnly)
        } catch {
            guard error.code == .missing else { throw error }
            return nil
        }
    }

    /// The home directory in the user database, for services without `HOME`.
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
}
