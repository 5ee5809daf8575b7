import ArgumentParser
import ConfigurationFiles
import PrefetchModel
import Reporting

extension ConfigCommand {
    struct Show: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "show",
            abstract: "Print the settings that a run would use, as TOML.",
            discussion: """
                Settings of all files and PREFETCH_* variables, and the tables of lists and hosts; \
                flags that no one sets have their defaults. Secrets are masked.
                """)

        @Flag(help: "Also print the file and line, or the variable, of each setting.")
        var origins = false

        @Flag(help: "Print JSON Lines: one object per setting.")
        var json = false

        @OptionGroup var options: Flags<ConfigurationFlags>

        func run() throws {
            let rows = RunFlags.all.filter(\.isConfigurable)
            let settings = try ConfigurationChoice(options).settings(
                rows, spellings: RunFlags.spellings)
            var lines = LineWriter.standardOutput()
            try write(ShownSetting.all(of: settings, rows), to: &lines)
            for (kind, tables) in [("list", settings.lists), ("host", settings.hosts)] {
                for table in tables {
                    try write(ShownSetting.all(of: table), of: (kind, table.name), to: &lines)
                }
            }
            try lines.finish()
        }

        private func write(
            _ settings: [ShownSetting], of table: (kind: String, name: String)? = nil,
            to lines: inout LineWriter
        ) throws {
            if let table, !json {
                let name = TOMLText.value(table.name, isNumber: false)
                try lines.write(line: "\n[\(table.kind).\(name)]")
            }
            for setting in settings {
                if json {
                    var object = JSONObject(setting)
                    if let table { object.add(table.kind, table.name) }
                    try lines.write(object)
                } else {
                    let origin = origins ? "  # \(printable(setting.origins))" : ""
                    try lines.write(line: setting.toml + origin)
                }
            }
        }
    }
}

/// A setting without secrets, for people and programs.
private struct ShownSetting {
    let name: String
    let value: ConfigurationSetting.Value
    let origins: String
}

extension ShownSetting {
    /// The settings in the order of the flags. Tables of variants and rules are shown as the flags
    /// that they become.
    static func all(of settings: EffectiveSettings, _ rows: [FlagRow]) -> [ShownSetting] {
        rows.compactMap { row in
            let added = ConfiguredCommand.added(settings, [row])
            if added.isEmpty {
                // A switch that is off, or a repeatable flag without values.
                guard let setting = settings.flags[row.name] else { return nil }
                return ShownSetting(
                    name: row.name, value: row.isRepeatable ? .texts([]) : .isOn(false),
                    origins: setting.origin.description)
            }
            let values = added.map { masked($0.value, of: row.name) }
            var origins: [String] = []
            for origin in added.map(\.origin.description) where !origins.contains(origin) {
                origins.append(origin)
            }
            return ShownSetting(
                name: row.name,
                value: row.value == nil
                    ? .isOn(true) : row.isRepeatable ? .texts(values) : .text(values[0]),
                origins: origins.joined(separator: ", "))
        }
    }

    /// The settings of a table of a list or host, with paths from the present folder.
    static func all(of table: EffectiveSettings.NamedTable) -> [ShownSetting] {
        table.settings.map { setting in
            ShownSetting(setting) { text in
                guard setting.key == ConfigurationKeys.listFile else { return text }
                return redacted(ConfiguredLists.path(of: text, in: table.path))
            }
        }
    }

    private init(_ setting: ConfigurationSetting, shown: (String) -> String) {
        func mask(_ text: String) -> String { ShownSetting.masked(shown(text), of: setting.key) }
        name = setting.key
        value =
            switch setting.value {
            case .isOn: setting.value
            case .text(let text): .text(mask(text))
            case .texts(let texts): .texts(texts.map(mask))
            }
        origins = setting.origin.description
    }

    /// Header fields without credentials.
    private static let plainFields: Set = [
        "accept", "accept-language", "referer", "user-agent",
    ]

    private static func masked(_ value: String, of key: String) -> String {
        guard !value.hasPrefix("@") else { return value }
        switch key {
        case SenderFlags.flags.user.row.name: return "***"
        case SenderFlags.flags.headers.row.name:
            // Fields of any name may be keys.
            guard let colon = value.firstIndex(of: ":") else { return "***" }
            let name = value[..<colon]
            return plainFields.contains(name.lowercased())
                ? RedactedURL(line: value).description : "\(name): ***"
        case RouteFlags.flags.proxy.row.name, InputFlags.flags.baseURL.row.name:
            return redacted(value)
        default: return value
        }
    }

    /// `jobs = 8`
    var toml: String {
        let text =
            switch value {
            case .isOn(let isOn): "\(isOn)"
            case .text(let text): TOMLText.value(text, isNumber: true)
            case .texts(let texts):
                "["
                    + texts.map { TOMLText.value($0, isNumber: false) }.joined(separator: ", ")
                    + "]"
            }
        return "\(TOMLText.key(name)) = \(text)"
    }
}

extension JSONObject {
    fileprivate init(_ setting: ShownSetting) {
        self.init()
        add("key", setting.name)
        switch setting.value {
        case .isOn(let isOn): add("value", isOn)
        case .text(let text): add("value", text)
        case .texts(let texts): add("value", texts)
        }
        add("origin", setting.origins)
    }
}
