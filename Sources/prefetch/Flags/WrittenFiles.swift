import CacheStorage
import ConfigurationFiles
import Glibc
import PrefetchModel

/// The files that one run reads and writes by name.
///
/// Checked before anything is written: a mistyped path must not cost a list, a key or the cache.
struct WrittenFiles {
    /// A file, and the flag or variable that names it; a manifest has none.
    struct Use {
        let path: String
        var name = ""

        fileprivate var subject: String {
            if name == "the configuration" { return "the configuration file \(path)" }
            if !name.isEmpty { return "the file of \(name)" }
            return path == "-" ? "the manifest on standard input" : "the manifest \(path)"
        }
    }

    /// The files of flags or variables that have a value.
    static func uses(_ paths: [(name: String, path: String?)]) -> [Use] {
        paths.compactMap { name, path in path.map { Use(path: $0, name: name) } }
    }

    /// Files that flags write; `-` is standard output.
    var written: [Use] = []
    /// Lists and files that flags read; `-` is standard input.
    var read: [Use] = []
    /// Whether the command writes configuration files.
    var replacesConfiguration = false
    /// Folders of files that the run reads.
    var foldersRead: [Use] = []

    /// Checks the files of a command over a cache, see ``check(cacheDirectory:_:)``.
    func check(_ cache: CacheOptions) throws {
        try check(cacheDirectory: try cache.path(), ConfigurationChoice(cache.configuration))
    }

    /// - Throws: `UserError` with status 64 if a flag would write a file in use: a list, the
    ///   file of another flag or of standard output, one of ``ConfiguredFiles``, or a file of this
    ///   or another cache, under any name.
    func check(cacheDirectory: String?, _ choice: ConfigurationChoice) throws {
        guard written.contains(where: { $0.path != "-" }) else { return }
        let configuration =
            replacesConfiguration
            ? [] : choice.paths.map { Use(path: $0, name: "the configuration") }
        let inForce = read + ConfiguredFiles.named(by: choice) + configuration
        for (index, use) in written.enumerated() where use.path != "-" {
            let others =
                inForce.map { ($0, $0.path == "-" ? "/dev/stdin" : $0.path) }
                + written[..<index].map { ($0, $0.path) }
                + [(Use(path: "-", name: "standard output"), "/dev/stdout")]
            // A flag may have its value from the configuration.
            for (other, path) in others
            where path != "-" && other.name != use.name && WrittenFiles.isSame(use.path, path) {
                let takesOutput = use.name == "--report" && path == "/dev/stdout"
                throw UserError(
                    .usage, "\(use.path): \(use.name) would overwrite \(other.subject)",
                    hint: takesOutput
                        ? "write to standard output with \(use.name) -"
                        : "name another file with \(use.name)")
            }
            let path = WrittenFiles.canonical(use.path)
            for folder in foldersRead where WrittenFiles.isInside(path, folder.path) {
                throw UserError(
                    .usage,
                    "\(use.path): \(use.name) would write into the folder of \(folder.name)",
                    hint: "name a file outside of \(folder.path) with \(use.name)")
            }
            if let folder = WrittenFiles.cache(of: use.path, path, cacheDirectory) {
                throw UserError(
                    .usage, "\(use.path): \(use.name) would write into the cache directory",
                    hint: "name a file outside of \(folder) with \(use.name)")
            }
        }
    }

    /// The cache that has a file; nil for a file of no cache.
    private static func cache(
        of path: String, _ canonicalPath: String?, _ cacheDirectory: String?
    ) -> String? {
        if let cacheDirectory {
            let cache = canonical(cacheDirectory) ?? cacheDirectory
            let databases = ["", "-wal"].map { "\(cache)/\(CacheDirectory.databaseName)\($0)" }
            if canonicalPath?.hasPrefix(cache + "/") == true
                || databases.contains(where: { isSame(path, $0) }) || isLinked(path, into: cache)
            {
                return cacheDirectory
            }
        }
        // Another cache, as of an earlier run.
        var folder = canonicalPath?[...] ?? ""
        while !folder.isEmpty {
            if CacheDirectory.isCache(String(folder)) { return String(folder) }
            folder = folder[..<(folder.lastIndex(of: "/") ?? folder.startIndex)]
        }
        return nil
    }

    private static func isSame(_ first: String, _ second: String) -> Bool {
        var statuses = (stat(), stat())
        guard stat(first, &statuses.0) == 0, stat(second, &statuses.1) == 0 else {
            return canonical(first).map { $0 == canonical(second) } ?? false
        }
        // Only a regular file can be overwritten, not a device or pipe with two names.
        return statuses.0.st_mode & S_IFMT == S_IFREG && statuses.0.st_dev == statuses.1.st_dev
            && statuses.0.st_ino == statuses.1.st_ino
    }

    /// Whether a file or folder is in a folder, or is it.
    static func isInside(_ path: String, folder: String) -> Bool {
        guard let path = canonical(path) else { return false }
        return path == canonical(folder) || isInside(path, folder)
    }

    /// Whether a canonical path is in a folder.
    private static func isInside(_ path: String?, _ folder: String) -> Bool {
        guard let path, let folder = canonical(folder) else { return false }
        return path.hasPrefix(folder == "/" ? folder : folder + "/")
    }

    /// Whether a file is also in a folder by another name. The folder is read only for a file that
    /// has several names.
    private static func isLinked(_ path: String, into folder: String) -> Bool {
        var status = stat()
        guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_nlink > 1
        else { return false }
        return holds(folder, status)
    }

    /// Whether the folder or one inside it holds the file.
    private static func holds(_ folder: String, _ file: stat) -> Bool {
        guard let listing = opendir(folder) else { return false }
        defer { closedir(listing) }
        while let entry = readdir(listing) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            guard name != ".", name != ".." else { continue }
            let isFolder = [UInt8(DT_DIR), UInt8(DT_UNKNOWN)].contains(entry.pointee.d_type)
            // Inode numbers save a call for each file.
            guard isFolder || entry.pointee.d_ino == file.st_ino else { continue }
            var status = stat()
            guard lstat("\(folder)/\(name)", &status) == 0 else { continue }
            if status.st_ino == file.st_ino, status.st_dev == file.st_dev { return true }
            if status.st_mode & S_IFMT == S_IFDIR, holds("\(folder)/\(name)", file) { return true }
        }
        return false
    }

    /// The absolute path without links; of a missing file or folder, its name in the canonical
    /// folder. Nil if the current folder is unknown, or for links in a circle.
    private static func canonical(_ path: String, links: Int = 0) -> String? {
        if let text = realpath(path, nil) {
            defer { free(text) }
            return String(cString: text)
        }
        var path = Substring(path)
        while path.count > 1, path.last == "/" { path.removeLast() }
        guard path != "/", path != "." else { return nil }
        let slash = path.lastIndex(of: "/")
        let folder = slash.map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
        let name = slash.map { path[path.index(after: $0)...] } ?? path
        // A link to a missing file: writing creates the file that it names.
        var target = [CChar](repeating: 0, count: Int(PATH_MAX) + 1)
        if readlink(String(path), &target, target.count - 1) > 0 {
            guard links < 40 else { return nil }
            let text = String(
                decoding: target.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
            return canonical(text.hasPrefix("/") ? text : "\(folder)/\(text)", links: links + 1)
        }
        return canonical(folder).map { $0 == "/" ? "/\(name)" : "\($0)/\(name)" }
    }
}

/// The files that are in force by configuration: its own files, files that any key of them or a
/// variable names, and files of credentials. No command may write over one.
enum ConfiguredFiles {
    /// Flags that name files which are only written. A page may be written by two commands.
    private static let outputs: Set<String> = [
        ShowingFlags.flags.report.row.name, ShowingFlags.flags.metrics.row.name,
        ShowingFlags.flags.junit.row.name,
        ShowingFlags.flags.page.row.name,
    ]

    /// The files that the configuration files and the environment name, in any profile. Mistakes in
    /// the files do not matter here.
    static func named(by choice: ConfigurationChoice) -> [WrittenFiles.Use] {
        // All files are protected: the next call may read others.
        let files = choice.paths.compactMap { path -> ConfigurationFile? in
            let bytes = try? InputFile.readRegular(path, limit: ConfigurationFile.maximumBytes)
            guard let bytes else { return nil }
            return ConfigurationFile(bytes, path: path)
        }
        var named = files.flatMap { file in
            file.settings.flatMap { ConfiguredFiles.uses(of: $0, in: file.path) }
        }
        let rows = RunFlags.all.filter { $0.value != nil }
        for setting in (try? EnvironmentSettings.settings(rows)) ?? [] {
            named += ConfiguredFiles.uses(of: setting, in: "")
        }
        let home = environment("HOME")
        let credentials = [
            ("NETRC", ".netrc"), ("AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials"),
            ("AWS_CONFIG_FILE", ".aws/config"),
        ]
        named += WrittenFiles.uses(
            credentials.map { variable, file in
                (variable, environment(variable) ?? home.map { "\($0)/\(file)" })
            })
        let variables =
            RouteFlags.flags.authorityFile.row.environment
            + ["AWS_CA_BUNDLE", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"]
        return named + WrittenFiles.uses(variables.map { ($0, environment($0)) })
    }

    private static func uses(
        of setting: ConfigurationSetting, in configuration: String
    ) -> [WrittenFiles.Use] {
        let texts = setting.value.texts
        if case .list = setting.table {
            guard setting.key == ConfigurationKeys.listFile else { return [] }
            return texts.filter { !ManifestSequence.isURL($0) }.map {
                WrittenFiles.Use(
                    path: ConfiguredLists.path(of: $0, in: configuration), name: "a list")
            }
        }
        if RunFlags.all.contains(where: { $0.name == setting.key && $0.value == "file" }) {
            guard !outputs.contains(setting.key) else { return [] }
            return texts.map { WrittenFiles.Use(path: $0, name: "--\(setting.key)") }
        }
        return texts.flatMap { text -> [WrittenFiles.Use] in
            if text.hasPrefix("@") {
                return [WrittenFiles.Use(path: String(text.dropFirst()), name: "@FILE")]
            }
            return overlays(in: text).map { WrittenFiles.Use(path: $0, name: "overlay=") }
        }
    }

    /// The files in steps of an image, `overlay=FILE@GRAVITY`.
    private static func overlays(in steps: String) -> [String] {
        steps.split(separator: ",").compactMap { step in
            guard let start = step.firstRange(of: "overlay=") else { return nil }
            return Transformation.overlayParts(String(step[start.upperBound...]))?.file
        }
    }
}
