import ArgumentParser
import CacheStorage
import ConfigurationFiles
import Glibc
import Pipeline
import PrefetchModel
import Reporting

struct ConfigCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "config",
        abstract: "Show, check and write configuration files.",
        discussion: """
            The keys of configuration files are the names of the flags of `run`. ./prefetch.toml \
            counts more than the user's file, and that one more than /etc/prefetch/config.toml; \
            PREFETCH_* variables count more than files, and flags most.

            Examples:
              prefetch config init
              prefetch config show --origins
              prefetch config check

            Exit status: 0 done, 2 a file cannot be read or written, 64 wrong usage, or a file has \
            mistakes.
            """,
        subcommands: [Show.self, CheckFiles.self, Init.self])

    struct Init: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "init",
            abstract: "Write a commented configuration file.",
            discussion: """
                Writes every key with its default and its help, commented out.

                Examples:
                  prefetch config init
                  prefetch config init ~/.config/prefetch/config.toml
                """)

        @Argument(
            help: .value(
                "file",
                "The file to write; - is standard output (default: \(ConfigurationChoice.projectFile))."
            ), completion: .file())
        var file: String?

        @Flag(help: "Replace an existing file.")
        var force = false

        func run() throws {
            let path = file ?? ConfigurationChoice.projectFile
            if path != "-", !force, access(path, F_OK) == 0 {
                throw UserError(
                    "\(path): exists already", hint: "--force replaces it; - prints the text")
            }
            var files = WrittenFiles()
            files.written = [WrittenFiles.Use(path: path, name: "config init")]
            files.replacesConfiguration = true
            try files.check(
                cacheDirectory: nil, ConfigurationChoice(try Flags<ConfigurationFlags>.parse([])))
            // ~/.config/prefetch is missing at first.
            if path != "-", let slash = path.lastIndex(of: "/"), slash != path.startIndex {
                try CacheDirectory.makeDirectories(String(path[..<slash]), mode: 0o777)
            }
            let text = CommentedConfiguration.lines.map { $0 + "\n" }.joined()
            try OutputFile.replace(path, with: Array(text.utf8))
        }
    }

    struct CheckFiles: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "check",
            abstract: "Find all mistakes in configuration files.",
            discussion: """
                Checks the files that a run would read, or FILE alone: syntax, keys, values, every \
                profile and every list. Also names PREFETCH_* variables that look misspelled.
                """)

        @Argument(help: .value("file", "A configuration file."), completion: .file())
        var file: String?

        @OptionGroup var options: Flags<ConfigurationFlags>

        func validate() throws {
            guard file == nil || options.file == nil else {
                throw ValidationError("name one file, or --config FILE")
            }
        }

        func run() throws {
            var choice = ConfigurationChoice(options)
            if let file { choice.file = file }
            let files = try choice.files()
            var problems = files.flatMap(\.problems).map(\.userError)
            // After other mistakes only values that no other setting could make right: the
            // settings of wrong lines are missing.
            let variables =
                file == nil
                ? RunFlags.all.flatMap { (try? EnvironmentSettings.settings([$0])) ?? [] } : []
            let check = ConfigurationCheck(files: files, variables: variables)
            problems += check.problems().filter { problem in
                problems.isEmpty || UsageAdvice.isAboutValue(problem.message)
            }
            if file == nil { problems += EnvironmentSettings.problems }
            for problem in problems { problem.report() }
            guard problems.isEmpty else { throw UserError(.usage, "") }
            try LineWriter.print(
                files.isEmpty
                    ? ["no configuration file"]
                    : files.map { "\(printable($0.path)): no mistakes" })
        }
    }

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

/// The values of files with right keys.
struct ConfigurationCheck {
    let files: [ConfigurationFile]
    let variables: [ConfigurationSetting]

    /// The wrong values, without a profile and with each.
    func problems() -> [UserError] {
        var problems: [UserError] = []
        let profiles = EffectiveSettings(files: files).profiles.map(Optional.some)
        // A variable hides a file's mistake in this shell alone.
        for variables in variables.isEmpty ? [[]] : [[], variables] {
            for profile in [nil] + profiles {
                let settings = EffectiveSettings(
                    files: files, variables: variables, profile: profile,
                    spellings: RunFlags.spellings + RunFlags.conflicts)
                problems += wrongValues(settings)
            }
        }
        problems += EffectiveSettings(files: files).lists.flatMap(ConfiguredLists.problems)
        // A profile repeats a mistake, perhaps with another hint.
        var seen: Set<String> = []
        return (problems + wrongHosts()).filter { seen.insert($0.description).inserted }
    }

    private func wrongHosts() -> [UserError] {
        var problems: [UserError] = []
        for host in EffectiveSettings(files: files).hosts {
            // Settings are also wrong together, and some values are read late.
            note(in: &problems) {
                _ = try HostSettings(host, host.settings).configuration(of: RunFlags.defaults)
            }
            for setting in host.settings {
                note(in: &problems) { _ = try HostSettings(host, [setting]) }
            }
        }
        return problems
    }

    /// Notes wrong usage; files that cannot be read are not mistakes of the configuration.
    private func note(in problems: inout [UserError], _ body: () throws -> Void) {
        do {
            try body()
        } catch {
            guard let problem = error as? UserError, problem.kind == .usage else { return }
            problems.append(problem)
        }
    }

    /// Parses the settings, without the ones found to be wrong, until they are right.
    private func wrongValues(_ settings: EffectiveSettings) -> [UserError] {
        var problems: [UserError] = []
        var command = ConfiguredCommand(["run", "-"])
        command.added = ConfiguredCommand.added(settings, RunFlags.all.filter(\.isConfigurable))
        while true {
            do {
                let run = try RunCommand.parse(Array(command.arguments.dropFirst()))
                _ = try run.configuration(manifests: [], Invocation())
                return problems
            } catch {
                let parse: ([String]) throws -> Void = {
                    _ = try RunCommand.parse(Array($0.dropFirst()))
                }
                guard let cause = command.cause(of: error, parse: parse) else {
                    let text =
                        (error as? any ReportableError)?.userError.description
                        ?? RunCommand.message(for: error)
                    let origin = command.added.first?.origin ?? .variable("PREFETCH_*")
                    return problems + [UserError(at: origin, text)]
                }
                problems.append(cause.problem)
                command.added.remove(at: cause.index)
            }
        }
    }
}

extension EnvironmentSettings {
    /// Wrong values of switches and paths, and names that look misspelled.
    fileprivate static var problems: [UserError] {
        var problems = misspellings.map { name, meant in
            UserError(at: .variable(name), "sets no flag", hint: "did you mean \(meant)?")
        }
        for row in RunFlags.all {
            do {
                _ = try settings([row])
            } catch {
                problems.append(error)
            }
        }
        return problems
    }
}

/// A setting without secrets, for people and programs.
private struct ShownSetting {
    let name: String
    let value: ConfigurationSetting.Value
    let origins: String
}

extension ShownSetting {
    /// The settings in the order of the flags. The table of a variant or rule is shown as its
    /// flag.
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
