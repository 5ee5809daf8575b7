import ArgumentParser
import ConfigurationFiles

/// A flag of `run` and its default value.
///
/// The property that holds the flag names its row, `@Option(RunFlags.jobs) var jobs: Int`, so the
/// parser can't disagree with the table.
struct RunFlag<Value: Sendable>: Sendable {
    let row: FlagRow
    let defaultValue: Value
}

/// One row of the table of flags: everything that help, manual, completions and configuration files
/// say about a flag.
struct FlagRow: Sendable {
    /// The long name, without hyphens.
    let name: String
    let short: Character?
    let group: FlagGroup
    /// The value's name in help; nil for a switch.
    let value: String?
    /// The description, in full sentences.
    let help: String
    /// The line of the flag on the `-h` page; nil if it isn't on that page.
    let brief: String?
    /// Whether a configuration file or an environment variable may set the flag. False if it
    /// belongs to one call.
    let isConfigurable: Bool
    /// Whether the configuration file of a project, which may be a stranger's, may set the flag.
    let projectRule: ConfigurationKeys.ProjectRule
    let isRepeatable: Bool
    /// Environment variables that give the value if the flag doesn't, the first one that is set.
    let environment: [String]
    fileprivate let valueType: (any ExpressibleByArgument.Type)?
    fileprivate let defaultValue: (any ExpressibleByArgument & Sendable)?

    /// The values of an enumeration; empty for any other flag.
    var choices: [String] { valueType?.allValueStrings ?? [] }

    /// The default as the user would write it; nil without one.
    var defaultText: String? { defaultValue?.defaultValueDescription }

    fileprivate var names: NameSpecification {
        guard let short else { return .customLong(name) }
        return [.customShort(short, allowingJoined: value != nil), .customLong(name)]
    }

    fileprivate var argumentHelp: ArgumentHelp { ArgumentHelp("\(help)", valueName: value) }

    fileprivate var completion: CompletionKind? {
        switch value {
        case "file": .file()
        case "dir": .directory
        default: nil
        }
    }
}

/// A heading of `run --help`.
enum FlagGroup: String {
    case input = "Input"
    case order = "Order"
    case hosts = "Concurrency and hosts"
    case limits = "Limits"
    case filters = "Filters"
    case requests = "Requests"
    case responses = "Responses"
    case freshness = "Freshness"
    case encoding = "Encoding"
    case output = "Output"
    case result = "Result"
}

// MARK: - Rows

extension RunFlag where Value: ExpressibleByArgument {
    /// A flag whose value has a default.
    init(
        _ name: String, short: Character? = nil, _ group: FlagGroup, value: String,
        default defaultValue: Value, help: String, brief: String? = nil,
        isConfigurable: Bool = true,
        inProjects projectRule: ConfigurationKeys.ProjectRule = .allowed
    ) {
        row = FlagRow(
            name: name, short: short, group: group, value: value, help: help, brief: brief,
            isConfigurable: isConfigurable, projectRule: projectRule, isRepeatable: false,
            environment: [], valueType: Value.self, defaultValue: defaultValue)
        self.defaultValue = defaultValue
    }
}

extension RunFlag {
    /// A flag whose value has no default.
    init<Wrapped: ExpressibleByArgument>(
        _ name: String, _ group: FlagGroup, value: String, help: String, brief: String? = nil,
        isConfigurable: Bool = true,
        inProjects projectRule: ConfigurationKeys.ProjectRule = .allowed,
        environment: [String] = []
    ) where Value == Wrapped? {
        row = FlagRow(
            name: name, short: nil, group: group, value: value, help: help, brief: brief,
            isConfigurable: isConfigurable, projectRule: projectRule, isRepeatable: false,
            environment: environment, valueType: Wrapped.self, defaultValue: nil)
        defaultValue = nil
    }

    /// A repeatable flag.
    init(
        repeatable name: String, _ group: FlagGroup, value: String, help: String,
        brief: String? = nil, isConfigurable: Bool = true,
        inProjects projectRule: ConfigurationKeys.ProjectRule = .allowed
    ) where Value == [String] {
        row = FlagRow(
            name: name, short: nil, group: group, value: value, help: help, brief: brief,
            isConfigurable: isConfigurable, projectRule: projectRule, isRepeatable: true,
            environment: [],
            valueType: nil, defaultValue: nil)
        defaultValue = []
    }

    /// A switch, which is off by default.
    init(
        _ name: String, short: Character? = nil, _ group: FlagGroup, help: String,
        brief: String? = nil, isConfigurable: Bool = true,
        inProjects projectRule: ConfigurationKeys.ProjectRule = .allowed
    ) where Value == Bool {
        row = FlagRow(
            name: name, short: short, group: group, value: nil, help: help, brief: brief,
            isConfigurable: isConfigurable, projectRule: projectRule, isRepeatable: false,
            environment: [], valueType: nil, defaultValue: nil)
        defaultValue = false
    }
}

// MARK: - Properties

extension Option where Value: ExpressibleByArgument & Sendable {
    init(_ flag: RunFlag<Value>) {
        self.init(
            wrappedValue: flag.defaultValue, name: flag.row.names, help: flag.row.argumentHelp,
            completion: flag.row.completion)
    }
}

extension Option {
    init<Wrapped: ExpressibleByArgument & Sendable>(
        _ flag: RunFlag<Wrapped?>
    ) where Value == Wrapped? {
        self.init(
            wrappedValue: nil, name: flag.row.names, help: flag.row.argumentHelp,
            completion: flag.row.completion)
    }

    init(_ flag: RunFlag<[String]>) where Value == [String] {
        self.init(
            wrappedValue: flag.defaultValue, name: flag.row.names, help: flag.row.argumentHelp,
            completion: flag.row.completion)
    }
}

extension Flag where Value == Bool {
    init(_ flag: RunFlag<Bool>) {
        self.init(
            wrappedValue: flag.defaultValue, name: flag.row.names, help: flag.row.argumentHelp)
    }
}
