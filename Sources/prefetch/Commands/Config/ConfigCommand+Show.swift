import ArgumentParser
import ConfigurationFiles
import PrefetchModel
import Reporting

extension ConfigCommand {
    /// `prefetch config show`
    struct Show: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "show",
            abstract: "Print the settings that a run would use, as TOML.",
            discussion: """
                Settings of all files and PREFETCH_* variables; flags that no one sets have their \
                defaults. Secrets are masked.
                """)

        @Flag(help: "Also print the file and line, or the variable, of each setting.")
        var origins = false

        @Flag(help: "Print JSON Lines: one object per setting.")
        var json = false

        @OptionGroup var options: ConfigurationOptions

        func run() throws {
            let rows = RunFlags.all.filter(\.isConfigurable)
            let settings = try ConfigurationChoice(options).settings(rows)
            var lines = LineWriter.standardOutput()
            try writing {
                for setting in ShownSetting.all(of: settings, rows) {
                    if json {
                        try lines.write(JSONObject(setting))
                    } else {
                        let origin = origins ? "  # \(printable(setting.origins))" : ""
                        try lines.write(line: setting.toml + origin)
                    }
                }
                for host in settings.hosts {
                    let table = "[host.\(TOMLText.value(host.pattern, isNumber: false))]"
                    if !json { try lines.write(line: "\n\(table)") }
                    for setting in ShownSetting.all(of: host) {
                        if json {
                            var object = JSONObject(setting)
                            object.add("host", host.pattern)
                            try lines.write(object)
                        } else {
                            let origin = origins ? "  # \(printable(setting.origins))" : ""
                            try lines.write(line: setting.toml + origin)
                        }
                    }
                }
                try lines.finish()
            }
        }
    }
}

/// A setting without secrets, for people and programs.
private struct ShownSetting {
    let row: FlagRow
    /// None for a switch.
    let values: [String]
    let isOn: Bool
    let origins: String

    /// The settings in the order of the flags. Tables of variants and rules are shown as the flags
    /// that they become.
    static func all(of settings: EffectiveSettings, _ rows: [FlagRow]) -> [ShownSetting] {
        rows.compactMap { row in
            let added = ConfiguredCommand.added(settings, [row])
            if added.isEmpty {
                // A switch that is off, or a repeatable flag without values.
                guard let setting = settings.flags[row.name] else { return nil }
                return ShownSetting(
                    row: row, values: [], isOn: false, origins: setting.origin.description)
            }
            let values = row.value == nil ? [] : added.map { masked($0.value, of: row) }
            var origins: [String] = []
            for origin in added.map(\.origin.description) where !origins.contains(origin) {
                origins.append(origin)
            }
            return ShownSetting(
                row: row, values: values, isOn: true, origins: origins.joined(separator: ", "))
        }
    }

    /// The settings of a table `[host.PATTERN]`.
    static func all(of host: EffectiveSettings.Host) -> [ShownSetting] {
        host.settings.compactMap { setting in
            RunFlags.all.first { $0.name == setting.key }.map { row in
                ShownSetting(
                    row: row, values: setting.value.texts.map { masked($0, of: row) }, isOn: true,
                    origins: setting.origin.description)
            }
        }
    }

    /// Header fields without credentials.
    private static let plainFields: Set = [
        "accept", "accept-language", "referer", "user-agent",
    ]

    /// The value without credentials.
    private static func masked(_ value: String, of row: FlagRow) -> String {
        guard !value.hasPrefix("@") else { return value }
        switch row.name {
        case RunFlags.user.row.name: return "***"
        case RunFlags.header.row.name:
            // Fields of any name may be keys.
            guard let colon = value.firstIndex(of: ":") else { return "***" }
            let name = value[..<colon]
            return plainFields.contains(name.lowercased())
                ? RedactedURL(line: value).description : "\(name): ***"
        case RunFlags.proxy.row.name, RunFlags.baseURL.row.name: return redacted(value)
        default: return value
        }
    }

    /// `jobs = 8`
    var toml: String {
        if row.value == nil { return "\(key) = \(isOn)" }
        let texts = values.map { TOMLText.value($0, isNumber: !row.isRepeatable) }
        return "\(key) = " + (row.isRepeatable ? "[\(texts.joined(separator: ", "))]" : texts[0])
    }

    private var key: String { TOMLText.key(row.name) }
}

extension JSONObject {
    fileprivate init(_ setting: ShownSetting) {
        self.init()
        add("key", setting.row.name)
        if setting.row.value == nil {
            add("value", setting.isOn)
        } else if setting.row.isRepeatable {
            add("value", setting.values)
        } else {
            add("value", setting.values.first)
        }
        add("origin", setting.origins)
    }
}
