import ConfigurationFiles
import Glibc
import PrefetchModel

/// The value of an environment variable; nil if it is unset or empty.
func environment(_ name: String) -> String? {
    guard let value = getenv(name), value.pointee != 0 else { return nil }
    return String(cString: value)
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
    static func settings(_ rows: [FlagRow]) throws(UserError) -> [ConfigurationSetting] {
        guard !names.isEmpty else { return [] }
        var settings: [ConfigurationSetting] = []
        for row in rows where row.isConfigurable {
            let name = variable(of: row)
            guard let text = environment(name) else { continue }
            let origin = ConfigurationSetting.Origin.variable(name)
            let value: ConfigurationSetting.Value
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
        return names.sorted().compactMap { name in
            guard !known.contains(name) else { return nil }
            return known.first { name.isNearly($0) }.map { (name, $0) }
        }
    }

    /// The names of all variables with the prefix.
    private static var names: [String] {
        var names: [String] = []
        var entry = environ
        while let text = entry.pointee {
            if strncmp(text, prefix, prefix.utf8.count) == 0 {
                names.append(String(String(cString: text).prefix { $0 != "=" }))
            }
            entry += 1
        }
        return names
    }
}
