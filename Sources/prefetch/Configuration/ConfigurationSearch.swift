import ConfigurationFiles
import Glibc
import PrefetchModel

/// Finds the configuration files and reads them.
///
/// A file that `--config` names replaces all others. Without one there are three, the highest
/// first: the project's `prefetch.toml` in the current directory, never in one above; the user's;
/// the system's. Only the project's may be a stranger's.
struct ConfigurationSearch {
    static let projectFile = "prefetch.toml"
    private static let systemFile = "/etc/prefetch/config.toml"
    private static let noFile = "none"

    var file: String?
    var trustsProject = false
    /// Whether the project's file may matter.
    var readsProject = true

    fileprivate struct SearchedFile {
        let path: String
        var isProject = false
    }

    /// The files that exist, the highest first.
    ///
    /// - Throws: `UserError` for a file that can't be read, also with mistakes in another.
    func files() throws -> [ConfigurationFile] {
        guard file != ConfigurationSearch.noFile else { return [] }
        if let file {
            let bytes = try reporting(as: {
                $0.subject = file
                $0.hint = "--config names a configuration file, or none"
            }) {
                try InputFile(file).read(limit: ConfigurationFile.maximumBytes + 1)
            }
            return [ConfigurationFile(bytes, path: file, keys: .ofRun, isForeign: false)]
        }
        var files: [ConfigurationFile] = []
        for place in places {
            guard let bytes = try read(place) else { continue }
            files.append(
                ConfigurationFile(
                    bytes, path: place.path, keys: .ofRun,
                    isForeign: place.isProject && !trustsProject))
        }
        return files
    }

    /// The paths of all files, whether they exist or are read by this call: another one reads them.
    var paths: [String] {
        places.map(\.path) + [file].compactMap { $0 == ConfigurationSearch.noFile ? nil : $0 }
    }

    private var places: [SearchedFile] {
        var places: [SearchedFile] = []
        if readsProject {
            places.append(SearchedFile(path: ConfigurationSearch.projectFile, isProject: true))
        }
        if let path = ConfigurationSearch.userFile { places.append(SearchedFile(path: path)) }
        return places + [SearchedFile(path: ConfigurationSearch.systemFile)]
    }

    /// The user's file, whether it exists or not; nil without a home.
    static var userFile: String? {
        // The XDG Base Directory Specification says to ignore a relative path.
        if let base = environment("XDG_CONFIG_HOME"), base.hasPrefix("/") {
            return base + "/prefetch/config.toml"
        }
        return environment("HOME").map { $0 + "/.config/prefetch/config.toml" }
    }

    /// The bytes of a file; nil if it is missing, or its folder can't be searched.
    private func read(_ place: SearchedFile) throws -> [UInt8]? {
        do {
            let descriptor = try InputFile.openRegular(place.path)
            defer { close(descriptor) }
            if place.isProject, !trustsProject { try checkOwner(of: descriptor, place) }
            return try InputFile.read(descriptor, limit: ConfigurationFile.maximumBytes + 1)
        } catch let error as InputFileError {
            if case .system(let code) = error, place.isMissing(code) { return nil }
            throw UserError("\(place.path): \(error.message)", hint: "--config none reads no file")
        }
    }

    /// Refuses the file of another user, who may have put it into a shared folder.
    private func checkOwner(of descriptor: Int32, _ place: SearchedFile) throws {
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_uid != geteuid(), status.st_uid != 0 else {
            return
        }
        throw UserError(
            "\(place.path): belongs to another user (uid \(status.st_uid))",
            hint: "--trust-project-config reads it, --config none ignores it")
    }
}

extension ConfigurationSearch.SearchedFile {
    /// Whether an error of opening the file means that it does not exist. A service may have no
    /// access to its user's home.
    fileprivate func isMissing(_ code: Int32) -> Bool {
        let folder =
            path.contains("/") ? String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)]) : "."
        return code == ENOENT || code == ENOTDIR || code == EACCES && access(folder, X_OK) != 0
    }
}

/// The configuration that the command line and the environment choose.
struct ConfigurationChoice {
    var file: String?
    var profile: String?
    var trustsProject: Bool

    static var rows: [FlagRow] {
        [
            ConfigurationFlags.flags.file.row, ConfigurationFlags.flags.profile.row,
            ConfigurationFlags.flags.trustsProject.row,
        ]
    }

    /// Whether a file or a profile is named.
    var isGiven: Bool { file != nil || profile != nil }

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
        self.file = value(file, ConfigurationFlags.flags.file.row)
        self.profile = value(profile, ConfigurationFlags.flags.profile.row)
        self.trustsProject = trustsProject
    }

    /// The settings of all files, and of the variables of some flags.
    ///
    /// - Throws: `UserError` for a mistake, after printing all but the last one.
    func settings(
        _ rows: [FlagRow], spellings: [Set<String>], readsProject: Bool = true
    ) throws -> EffectiveSettings {
        let search = ConfigurationSearch(
            file: file, trustsProject: trustsProject, readsProject: readsProject || trustsProject)
        let files = try search.files()
        try ConfigurationChoice.refuse(files.flatMap(\.problems))
        let variables = try EnvironmentSettings.settings(rows)
        let settings = EffectiveSettings(
            files: files, variables: variables, profile: profile,
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
}
