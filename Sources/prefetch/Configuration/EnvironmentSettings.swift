import ConfigurationFiles
import Glibc
import PrefetchModel

/// The value of an environment variable; nil if it is unset or empty.
func environment(_ name: String) -> String? {
    guard let value = getenv(name), value.pointee != 0 else { return nil }
    return String(cString: value)
}

enum HomeDirectory {
    /// `HOME`, else the home in the user database, for services without the variable; nil without
    /// both.
    static var path: String? {
        if let path = environment("HOME") { return path }
        guard let entry = getpwuid(geteuid()), let path = entry.pointee.pw_dir, path.pointee != 0
        else { return nil }
        return String(cString: path)
    }
}

enum CurrentFolder {
    /// Without a final slash; nil if it was removed or cannot be reached.
    static var path: String? {
        guard let folder = getcwd(nil, 0) else { return nil }
        defer { free(folder) }
        let path = String(cString: folder)
        return path == "/" ? "" : path
    }
}

/// Environment variables that set flags: `PREFETCH_HOST_CONCURRENCY` is `--host-concurrency`.
enum EnvironmentSettings {
    private static let prefix = "PREFETCH_"
    private static let switches = [
        "1": true, "true": true, "yes": true, "0": false, "false": false, "no": false,
    ]

    static func variable(of row: FlagRow) -> String {
        prefix
            + String(row.name.map { $0 == "-" || $0 == "." ? "_" : Character($0.uppercased()) })
    }

    /// The settings of some flags; an empty variable counts as unset. A repeatable flag takes one
    /// value a line.
    static func settings(
        _ rows: [FlagRow], of variables: [String: String] = variables
    ) throws(UserError) -> [ConfigurationSetting] {
        guard !variables.isEmpty else { return [] }
        var settings: [ConfigurationSetting] = []
        for row in rows where row.isConfigurable {
            let name = variable(of: row)
            guard let text = variables[name], !text.isEmpty else { continue }
            let origin = ConfigurationSetting.Origin.variable(name)
            var value: ConfigurationSetting.Value
            if row.value == nil {
                guard let isOn = switches[text.lowercased()] else {
                    throw UserError(at: origin, "takes 1, true or yes, or 0, false or no")
                }
                value = .isOn(isOn)
            } else if row.isRepeatable {
                value = .texts(text.split(separator: "\n").map(String.init))
            } else {
                value = .text(text)
            }
            value = try reporting(as: { $0 = UserError(at: origin, $0.message, hint: $0.hint) }) {
                try value.mapTexts { text throws(UserError) in
                    try row.path.expanded(text, home: HomeDirectory.path)
                }
            }
            settings.append(ConfigurationSetting(key: row.name, value: value, origin: origin))
        }
        return settings
    }

    /// The variables that probably mean a flag, and the right name: (`PREFETCH_JOB`,
    /// `PREFETCH_JOBS`).
    static var misspellings: [(name: String, meant: String)] {
        let known =
            RunFlags.all.filter(\.isConfigurable).map(variable)
            + ConfigurationChoice.rows.flatMap(\.environment)
        return variables.keys.sorted().compactMap { name in
            guard !known.contains(name) else { return nil }
            return known.first { name.isNearly($0) }.map { (name, $0) }
        }
    }

    /// All variables with the prefix, also empty ones.
    static var variables: [String: String] {
        var variables: [String: String] = [:]
        var entry = environ
        while let text = entry.pointee {
            if strncmp(text, prefix, prefix.utf8.count) == 0 {
                let parts = String(cString: text).split(
                    separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
                if parts.count == 2 { variables[String(parts[0])] = String(parts[1]) }
            }
            entry += 1
        }
        return variables
    }
}
