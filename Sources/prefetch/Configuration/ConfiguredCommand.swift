import ArgumentParser
import ConfigurationFiles
import PrefetchModel

/// A command line with the settings of configuration files and environment variables.
///
/// Settings become arguments in front of the user's, so that values are read in one place. A flag
/// on the command line replaces its setting, and all values of a repeatable one.
struct ConfiguredCommand {
    /// A flag's arguments, from a file or a variable.
    struct Added {
        let row: FlagRow
        /// Empty for a switch.
        let value: String
        let origin: ConfigurationSetting.Origin

        var arguments: [String] {
            row.value == nil ? ["--\(row.name)"] : ConfiguredCommand.arguments(row.name, value)
        }
    }

    /// The user's arguments, without the ones that only take settings back.
    private(set) var given: [String]
    var added: [Added] = []
    private(set) var invocation = Invocation()
    private let variables: [String: String]
    /// Whether a command takes all flags of `run`.
    private static func isRun(_ name: String) -> Bool {
        name == RunCommand.configuration.commandName
            || name == PlanCommand.configuration.commandName
    }

    /// Whether the arguments name a group of commands, and none in it.
    private var isGroup: Bool {
        guard words == 1, let configuration = Prefetch.subcommand(given.first)?.configuration else {
            return false
        }
        return !configuration.subcommands.isEmpty && configuration.defaultSubcommand == nil
    }

    /// The number of leading words that name the command.
    private let words: Int

    var arguments: [String] {
        given.prefix(words) + added.flatMap(\.arguments) + given.dropFirst(words)
    }

    /// The arguments of a flag with a value. For `--flag=` the parser would take the next argument.
    static func arguments(_ flag: String, _ value: String) -> [String] {
        value.isEmpty ? ["--\(flag)", ""] : ["--\(flag)=\(value)"]
    }

    init(
        _ arguments: [String], variables: [String: String] = EnvironmentSettings.variables
    ) {
        given = arguments
        self.variables = variables
        words = ConfiguredCommand.words(of: arguments)
    }

    /// Adds settings to a command line, unless it requests help or manages configuration files.
    ///
    /// - Throws: `UserError` for files with mistakes, after printing all but the last one.
    mutating func configure() throws {
        let name = words > 0 ? given[0] : "run"
        guard name != ConfigCommand.configuration.commandName,
            !ConfiguredCommand.isAboutProgram(given), !isGroup
        else { return }
        guard mayBeConfigured else { return }
        let configurable = sharedRows(name)
        let denied = takeDenials(of: configurable)
        let takesAll = ConfiguredCommand.isRun(name)
        let flags = GivenFlags(
            given, of: takesAll ? RunFlags.all : configurable + ConfigurationChoice.rows)
        if let name = denied.sorted().first(where: { flags.arguments[$0] != nil }) {
            throw UserError(.usage, "--\(name) and --no-\(name) cannot be combined")
        }
        let choice = ConfigurationChoice(flags)
        let rows = configurable.filter { row in
            !denied.contains(row.name) && !flags.replaces(row.name)
        }
        // Scripts start some commands once per image, often with variables for all of this.
        let isSettled = rows.allSatisfy { row in
            variables[EnvironmentSettings.variable(of: row)]?.isEmpty == false
        }
        guard !rows.isEmpty || namesList || choice.isGiven else { return }
        let readsProject =
            namesList || choice.profile != nil || rows.contains { $0.projectRule != .refused }
        let settings =
            isSettled && !namesList && !choice.isGiven
            ? EffectiveSettings(
                files: [], variables: try EnvironmentSettings.settings(rows, of: variables))
            : try choice.settings(
                rows, spellings: flags.spellings, readsProject: readsProject, variables: variables)
        added = ConfiguredCommand.added(settings, rows)
        invocation.configured = Set(added.map(\.row.name))
        if takesHosts {
            let (certificate, key) = (RouteFlags.flags.certificate, RouteFlags.flags.certificateKey)
            invocation.hosts = try ConfiguredHosts(settings) { name in
                // The key of a table belongs to its certificate.
                let names = name == key.row.name ? [name, certificate.row.name] : [name]
                return !configurable.contains { $0.name == name }
                    || names.contains {
                        flags.containsSpelling(of: $0) || settings.isSetByVariable($0)
                    }
            }
        }
        guard !settings.lists.isEmpty else { return }
        let input = NamedListFlags.flags.all.map(\.row).filter { !denied.contains($0.name) }
        invocation.lists = ConfiguredLists(
            settings,
            before: Dictionary(
                grouping: ConfiguredCommand.added(settings, input), by: \.row.name
            ).mapValues { $0.flatMap(\.arguments) },
            after: flags.arguments.filter { name, _ in input.contains { $0.name == name } })
    }

    /// Whether an argument names a list, also behind `--unlisted=`.
    private var namesList: Bool {
        given.contains { argument in
            ConfiguredLists.isName(argument)
                || argument.hasPrefix("-")
                    && argument.split(separator: "=", maxSplits: 1).dropFirst().contains {
                        ConfiguredLists.isName(String($0))
                    }
        }
    }

    /// Whether there is anything to read or to take back. Finding a command's flags takes time, and
    /// some commands start once per image.
    private var mayBeConfigured: Bool {
        !variables.isEmpty || namesList || given.contains { $0.hasPrefix("--no-") }
            || ConfigurationChoice(GivenFlags(given, of: ConfigurationChoice.rows)).mayHaveSettings
    }

    /// Removes the arguments `--no-NAME`, which take back the setting of a file or variable, and
    /// returns the names of the flags.
    private mutating func takeDenials(of rows: [FlagRow]) -> Set<String> {
        guard given.contains(where: { $0.hasPrefix("--no-") }) else { return [] }
        let denials = Dictionary(uniqueKeysWithValues: rows.map { ("--no-\($0.name)", $0.name) })
            .filter { argument, _ in !rows.contains { "--\($0.name)" == argument } }
        let end = given.firstIndex(of: "--") ?? given.endIndex
        let denied = Set(given[..<end].compactMap { denials[$0] })
        given = given[..<end].filter { denials[$0] == nil } + given[end...]
        return denied
    }

    /// The arguments of the settings of some flags, in the order of the flags.
    static func added(_ settings: EffectiveSettings, _ rows: [FlagRow]) -> [Added] {
        rows.flatMap { row -> [Added] in
            func added(_ value: String, _ origin: ConfigurationSetting.Origin) -> Added {
                Added(row: row, value: value, origin: origin)
            }
            if row.name == EncodingFlags.flags.variants.row.name {
                return settings.variants.map { added($0.variantArgument, $0.settings[0].origin) }
            }
            if row.name == DiskFlags.flags.prune.row.name {
                guard let text = settings.pruneArgument,
                    let origin = settings.rules.first?.origin ?? settings.pruneFlag?.origin
                else { return [] }
                return [added(text, origin)]
            }
            guard let setting = settings.flags[row.name] else { return [] }
            return switch setting.value {
            case .isOn(true): [added("", setting.origin)]
            case .isOn(false): []
            case .text(let text):
                row.valuesOfRun.contains(text) ? [] : [added(text, setting.origin)]
            case .texts(let texts): texts.map { added($0, setting.origin) }
            }
        }
    }

    /// The flags that the command takes from configuration. Settings of flags that it lacks, or
    /// that have no effect with these arguments, do not concern it.
    private func sharedRows(_ name: String) -> [FlagRow] {
        if ConfiguredCommand.isRun(name) { return RunFlags.all.filter(\.isConfigurable) }
        let unmet = SharedFlags.unmet(name, given)
        return command.ownSharedRows.filter { row in
            !unmet.contains { _, rows in rows.contains { $0.name == row.name } }
        }
    }

    /// The command that the leading words name.
    private var command: any ParsableCommand.Type {
        guard let first = Prefetch.subcommand(given.first) else { return RunCommand.self }
        let configuration = first.configuration
        let named = configuration.subcommands.first { $0._commandName == given.dropFirst().first }
        return (words == 2 ? named : configuration.defaultSubcommand) ?? first
    }

    /// Whether the tables of hosts concern the command.
    private var takesHosts: Bool {
        ConfiguredCommand.isRun(given.first ?? "") || words == 0
            || command is any HostedCommand.Type
    }

    /// The number of leading words that name the command: `failed list` has two.
    private static func words(of arguments: [String]) -> Int {
        guard let command = Prefetch.subcommand(arguments.first) else { return 0 }
        let names = command.configuration.subcommands.map { $0._commandName }
        return arguments.count > 1 && names.contains(arguments[1]) ? 2 : 1
    }

    /// Whether the arguments request help, the version or a script.
    private static func isAboutProgram(_ arguments: [String]) -> Bool {
        let options = arguments.prefix { $0 != "--" }
        return arguments.isEmpty || arguments.first == "help"
            || options.contains {
                ["-h", "--help", "--help-hidden", "--version"].contains($0)
                    || $0.hasPrefix("--experimental-dump") || $0.hasPrefix("---completion")
                    || $0.hasPrefix(CompletionScript.flag)
            }
    }
}

extension EffectiveSettings {
    /// Whether a variable sets a flag, or another one that sets the same. A switch that is off
    /// takes back only itself.
    func isSetByVariable(_ key: String) -> Bool {
        flags.values.contains { setting in
            setting.origin.line == 0
                && (setting.key == key
                    || setting.value != .isOn(false)
                        && RunFlags.spellings(of: key).contains(setting.key))
        }
    }
}

/// The tables of a call's configuration files, and the flags that files and variables set.
struct Invocation: Sendable {
    var configured: Set<String> = []
    var hosts = ConfiguredHosts()
    var lists = ConfiguredLists()
}

/// A command that uses tables of configuration files. `main` passes them on.
protocol InvokedCommand: ParsableCommand {
    mutating func run(_ invocation: Invocation) throws
}

/// A command that applies the tables of hosts to the flags that it shares with `run`.
protocol HostedCommand: InvokedCommand {}

extension ParsableCommand {
    /// Runs the command, with the invocation if it takes one.
    mutating func start(_ invocation: Invocation) throws {
        guard var invoked = self as? any InvokedCommand else { return try run() }
        try invoked.run(invocation)
    }
}

extension ConfiguredCommand {
    struct WrongSetting {
        /// The setting's index among the added ones.
        let index: Int
        let problem: UserError
    }

    /// The failure that names the place of a wrong setting; nil if the error has another cause.
    ///
    /// `parse` parses arguments. It is called only for errors that don't name a flag.
    func failure(for error: any Error, parse: ([String]) throws -> Void) -> UserError? {
        if let cause = cause(of: error, parse: parse) { return cause.problem }
        guard !added.isEmpty, !(error is UserError),
            let (text, _) = ConfiguredCommand.usageError(error), isRight(given, parse)
        else { return nil }
        return UserError(.usage, text, hint: ConfiguredCommand.advice)
    }

    /// The setting that causes wrong usage: the first one that the message names by its flag, else
    /// the first one that is refused alone.
    func cause(of error: any Error, parse: ([String]) throws -> Void) -> WrongSetting? {
        guard !added.isEmpty, let (text, hint) = ConfiguredCommand.usageError(error) else {
            return nil
        }
        func cause(_ index: Int, hint: String?) -> WrongSetting {
            WrongSetting(
                index: index,
                problem: UserError(
                    at: added[index].origin, text, hint: hint ?? ConfiguredCommand.advice))
        }
        let named = added.indices.filter { added[$0].isNamed(in: text) }
        if let first = named.first {
            let others = named.dropFirst().map {
                "--\(added[$0].row.name) is set in \(added[$0].origin)"
            }
            let row = added[first].row
            // A flag of the user excludes the setting.
            let isGiven = given.contains { argument in
                let flag = argument.prefix { $0 != "=" }
                return flag.hasPrefix("--") && Added.names(text, String(flag))
            }
            let all = isGiven ? others + ["--no-\(row.name) takes the setting back"] : others
            return cause(first, hint: all.isEmpty ? hint : all.joined(separator: ", "))
        }
        // The user may have made the mistake.
        guard !(error is UserError), isRight(given, parse) else { return nil }
        let alone = added.indices.first { index in
            var command = ConfiguredCommand(given)
            command.added = [added[index]]
            return !isRight(command.arguments, parse)
        }
        return alone.map { cause($0, hint: hint) }
    }

    private static let advice = "`prefetch config show --origins` lists the settings in force"

    private func isRight(_ arguments: [String], _ parse: ([String]) throws -> Void) -> Bool {
        (try? parse(arguments)) != nil
    }

    /// The message and hint of wrong usage; nil for any other error.
    private static func usageError(_ error: any Error) -> (text: String, hint: String?)? {
        if let failure = error as? UserError {
            // An error with a subject names its place.
            guard failure.kind == .usage, failure.subject.isEmpty else { return nil }
            return (failure.description, failure.hint)
        }
        guard Prefetch.exitCode(for: error) == .validationFailure else { return nil }
        let text = UsageAdvice.oneLine(Prefetch.message(for: error))
        // Its suggestion is no cause.
        return text.hasPrefix("Unknown option") ? nil : (text, nil)
    }
}

extension ConfiguredCommand.Added {
    /// Whether a message names the flag, or, of several variants, this one.
    fileprivate func isNamed(in text: String) -> Bool {
        guard row.name == EncodingFlags.flags.variants.row.name else {
            return Self.names(text, "--\(row.name)")
                || row.short.map { Self.names(text, "-\($0)") } == true
        }
        let name = value.prefix { $0 != "=" }
        return Self.names(text, "variant \(name)")
            || Self.names(text, "--variant") && !text.hasPrefix("--variant ")
    }

    /// Whether a text has a flag in it that isn't the beginning or end of another.
    fileprivate static func names(_ text: String, _ flag: String) -> Bool {
        text.ranges(of: flag).contains { range in
            let before = text[..<range.lowerBound].last
            let after = text[range.upperBound...].first
            return before != "-" && before?.isLetter != true
                && after?.isLetter != true && after?.isNumber != true && after != "-"
        }
    }
}
