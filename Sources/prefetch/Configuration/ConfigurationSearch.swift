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
