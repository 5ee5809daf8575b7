import ConfigurationFiles
import Glibc
import PrefetchModel

/// The configuration that the command line and the environment choose.
///
/// A file that `--config` names replaces all others. Without one there are three, the highest
/// first: the project's `prefetch.toml` in the current directory, never in one above; the user's;
/// the system's. Only the project's may be a stranger's.
struct ConfigurationChoice {
    static let projectFile = "prefetch.toml"
    private static let systemFile = "/etc/prefetch/config.toml"
    private static let noFile = "none"

    var file: String?
    let profile: String?
    var trustsProject: Bool

    static var rows: [FlagRow] {
        [
            ConfigurationFlags.flags.file.row, ConfigurationFlags.flags.profile.row,
            ConfigurationFlags.flags.trustsProject.row,
        ]
    }

    /// Whether a file or a profile is named.
    var isGiven: Bool { file != nil || profile != nil }

    /// Whether a file or a profile is named, or a file is in its place.
    var mayHaveSettings: Bool {
        isGiven
            || ConfigurationChoice.places.contains {
                access($0, F_OK) == 0 || ![ENOENT, ENOTDIR].contains(errno)
            }
    }

    init(_ flags: GivenFlags) {
        self.init(
            file: flags.value(of: ConfigurationFlags.flags.file.row),
            profile: flags.value(of: ConfigurationFlags.flags.profile.row),
            trustsProject: flags.contains(ConfigurationFlags.flags.trustsProject.row))
    }

    init(_ options: Flags<ConfigurationFlags>) {
        self.init(
            file: options.file, profile: options.profile, trustsProject: options.trustsProject)
    }

    private init(file: String?, profile: String?, trustsProject: Bool) {
        func value(_ given: String?, _ row: FlagRow) -> String? {
            given ?? row.environment.lazy.compactMap(environment).first
        }
        let row = ConfigurationFlags.flags.file.row
        // A path that cannot be expanded is named as a missing file.
        self.file = value(file, row).map { path in
            file == nil ? (try? row.path.expanded(path, home: HomeDirectory.path)) ?? path : path
        }
        self.profile = value(profile, ConfigurationFlags.flags.profile.row)
        self.trustsProject = trustsProject
    }

    /// The settings of all files, and of the variables of some flags.
    ///
    /// - Throws: `UserError` for a mistake, after printing all but the last one.
    func settings(
        _ rows: [FlagRow], spellings: [Set<String>], readsProject: Bool = true,
        variables: [String: String] = EnvironmentSettings.variables
    ) throws -> EffectiveSettings {
        let files = try files(readsProject: readsProject || trustsProject)
        try ConfigurationChoice.refuse(files.flatMap(\.problems))
        let settings = EffectiveSettings(
            files: files, variables: try EnvironmentSettings.settings(rows, of: variables),
            profile: profile,
            spellings: spellings + RunFlags.conflicts)
        if let profile, !settings.profiles.contains(profile) {
            let known = settings.profiles
            throw UserError(
                .usage, "\(profile): no such profile",
                hint: known.isEmpty
                    ? "a profile is a table [profile.\(profile)] in a configuration file"
                    : "known are \(known.listed(with: "and"))")
        }
        return settings
    }

    /// The most mistakes that are printed.
    private static let shownProblems = 20

    private static func refuse(_ problems: [ConfigurationProblem]) throws {
        let shown = problems.prefix(shownProblems)
        guard let last = shown.last else { return }
        for problem in shown.dropLast() { problem.userError.report() }
        throw last.userError
    }

    // MARK: Files

    /// The files that exist, the highest first. `readsProject`: whether the project's may matter.
    ///
    /// - Throws: `UserError` for a file that can't be read, also with mistakes in another.
    func files(readsProject: Bool = true) throws -> [ConfigurationFile] {
        guard file != ConfigurationChoice.noFile else { return [] }
        if let file {
            let bytes = try reporting(as: {
                $0.subject = file
                $0.hint = "--config names a configuration file, or none"
            }) {
                try InputFile(file).read(limit: ConfigurationFile.maximumBytes + 1)
            }
            return [ConfigurationFile(bytes, path: file)]
        }
        return try ConfigurationChoice.places.compactMap { path in
            // A stranger's, unless the user says otherwise.
            let isForeign = path == ConfigurationChoice.projectFile && !trustsProject
            guard path != ConfigurationChoice.projectFile || readsProject,
                let bytes = try ConfigurationChoice.read(path, isForeign: isForeign)
            else { return nil }
            return ConfigurationFile(bytes, path: path, isForeign: isForeign)
        }
    }

    /// The paths of all files, whether they exist or are read by this call: another one reads them.
    var paths: [String] {
        ConfigurationChoice.places
            + [file].compactMap { $0 == ConfigurationChoice.noFile ? nil : $0 }
    }

    private static var places: [String] {
        [projectFile] + [userFile].compactMap(\.self) + [systemFile]
    }

    /// The user's file, whether it exists or not; nil without a home.
    private static var userFile: String? {
        // The XDG Base Directory Specification says to ignore a relative path.
        if let base = environment("XDG_CONFIG_HOME"), base.hasPrefix("/") {
            return base + "/prefetch/config.toml"
        }
        return environment("HOME").map { $0 + "/.config/prefetch/config.toml" }
    }

    /// The bytes of a file; nil if it is missing, or its folder can't be searched.
    private static func read(_ path: String, isForeign: Bool) throws -> [UInt8]? {
        do {
            let descriptor = try InputFile.openRegular(path)
            defer { close(descriptor) }
            if isForeign { try checkOwner(of: descriptor, path) }
            return try InputFile.read(descriptor, limit: ConfigurationFile.maximumBytes + 1)
        } catch let error as InputFileError {
            if case .system(let code) = error, isMissing(path, code) { return nil }
            throw UserError("\(path): \(error.message)", hint: "--config none reads no file")
        }
    }

    /// Refuses the file of another user, who may have put it into a shared folder.
    private static func checkOwner(of descriptor: Int32, _ path: String) throws {
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_uid != geteuid(), status.st_uid != 0 else {
            return
        }
        throw UserError(
            "\(path): belongs to another user (uid \(status.st_uid))",
            hint: "--trust-project-config reads it, --config none ignores it")
    }

    /// Whether an error of opening the file means that it does not exist. A service may have no
    /// access to its user's home.
    private static func isMissing(_ path: String, _ code: Int32) -> Bool {
        let folder =
            path.contains("/") ? String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)]) : "."
        return code == ENOENT || code == ENOTDIR || code == EACCES && access(folder, X_OK) != 0
    }
}
