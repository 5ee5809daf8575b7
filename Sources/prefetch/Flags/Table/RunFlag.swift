import ArgumentParser
import ConfigurationFiles
import PrefetchModel

/// A flag of `run`: everything about it, and its effect.
///
/// It is declared once, as a property of a ``FlagRows``. The parser's property, the help, the keys
/// of configuration files, the tables of hosts and the run's configuration follow from it.
struct RunFlag<Value: Sendable>: Sendable {
    let row: FlagRow
    let defaultValue: Value
    private let check: ValueCheck<Value>
    private let effect: @Sendable (inout RunSettings, Value) throws -> Void
    /// The effect in the table `[host."PATTERN"]`; nil if that must not have the flag.
    private let hosts: HostEffect<Value>?
    /// The parser's property.
    private let property: @Sendable () -> Any
    /// Reads the value of a table of a host, which has one.
    private let parsed: @Sendable (ConfigurationSetting.Value) throws -> Value
}

typealias SettingsPath<Value> = WritableKeyPath<RunSettings, Value> & Sendable

enum HostEffect<Value: Sendable>: Sendable {
    /// The same effect, on the configuration of the host.
    case likeRun
    /// An effect on the entries of the host.
    case entries(@Sendable (inout HostFields, Value) throws -> Void)
}

// MARK: - Rows

extension RunFlag where Value: ExpressibleByArgument {
    /// A flag with a default.
    init(
        _ name: String, short: Character? = nil, value: String, default defaultValue: Value,
        help: String, brief: String? = nil,
        inProjects projectRule: ConfigurationKeys.ProjectRule = .allowed,
        inHosts hosts: HostEffect<Value>? = nil, check: ValueCheck<Value> = .none,
        _ effect: @escaping @Sendable (inout RunSettings, Value) throws -> Void = { _, _ in }
    ) {
        let row = FlagRow(
            name: name, short: short,
            parameter: FlagParameter(name: value, type: Value.self, standard: defaultValue),
            help: help, brief: brief, isConfigurable: true, projectRule: projectRule,
            isPerHost: hosts != nil)
        self.init(
            row: row, defaultValue: defaultValue, check: check, effect: effect, hosts: hosts,
            property: {
                Option<Value>(
                    wrappedValue: defaultValue, name: row.names, help: row.argumentHelp,
                    completion: row.completion)
            },
            parsed: { try row.value(in: $0) })
    }

    /// A flag that sets a property of the run, and has its default.
    init(
        _ name: String, value: String, sets property: any SettingsPath<Value>, help: String,
        brief: String? = nil, inProjects projectRule: ConfigurationKeys.ProjectRule = .allowed,
        inHosts hosts: HostEffect<Value>? = nil, check: ValueCheck<Value> = .none
    ) {
        self.init(
            name, value: value, default: RunSettings.defaults[keyPath: property], help: help,
            brief: brief, inProjects: projectRule, inHosts: hosts, check: check
        ) { $0[keyPath: property] = $1 }
    }
}

extension RunFlag {
    /// A flag without a default. Without a value it has no effect.
    init<Wrapped: ExpressibleByArgument & Sendable>(
        _ name: String, value: String, help: String, brief: String? = nil,
        isConfigurable: Bool = true,
        inProjects projectRule: ConfigurationKeys.ProjectRule = .allowed,
        inHosts hosts: HostEffect<Wrapped>? = nil, environment: [String] = [],
        replaces alternatives: [String] = [], holdsSecret: Bool = false,
        check: ValueCheck<Wrapped> = .none,
        _ effect: @escaping @Sendable (inout RunSettings, Wrapped) throws -> Void = { _, _ in }
    ) where Value == Wrapped? {
        let row = FlagRow(
            name: name, parameter: FlagParameter(name: value, type: Wrapped.self), help: help,
            brief: brief, isConfigurable: isConfigurable, projectRule: projectRule,
            isPerHost: hosts != nil, environment: environment, alternatives: alternatives,
            holdsSecret: holdsSecret)
        self.init(
            row: row, defaultValue: nil, check: ValueCheck { $0.flatMap(check.mistake) },
            effect: { settings, value in
                if let value { try effect(&settings, value) }
            },
            hosts: hosts?.optional,
            property: {
                Option<Value>(
                    wrappedValue: nil, name: row.names, help: row.argumentHelp,
                    completion: row.completion)
            },
            parsed: { try row.value(in: $0) as Wrapped })
    }

    /// A repeatable flag.
    init(
        repeatable name: String, value: String, help: String, brief: String? = nil,
        isConfigurable: Bool = true,
        inProjects projectRule: ConfigurationKeys.ProjectRule = .allowed,
        inHosts hosts: HostEffect<[String]>? = nil, holdsSecret: Bool = false,
        _ effect: @escaping @Sendable (inout RunSettings, [String]) throws -> Void = { _, _ in }
    ) where Value == [String] {
        let row = FlagRow(
            name: name, parameter: FlagParameter(name: value, isRepeatable: true), help: help,
            brief: brief, isConfigurable: isConfigurable, projectRule: projectRule,
            isPerHost: hosts != nil, holdsSecret: holdsSecret)
        self.init(
            row: row, defaultValue: [], check: .none, effect: effect, hosts: hosts,
            property: {
                Option<[String]>(
                    wrappedValue: [], name: row.names, help: row.argumentHelp,
                    completion: row.completion)
            },
            parsed: { $0.texts })
    }

    /// A switch, which is off by default.
    init(
        _ name: String, short: Character? = nil, help: String, brief: String? = nil,
        isConfigurable: Bool = true,
        inProjects projectRule: ConfigurationKeys.ProjectRule = .allowed,
        inHosts hosts: HostEffect<Bool>? = nil, replaces alternatives: [String] = [],
        _ effect: @escaping @Sendable (inout RunSettings, Bool) throws -> Void = { _, _ in }
    ) where Value == Bool {
        let row = FlagRow(
            name: name, short: short, help: help, brief: brief, isConfigurable: isConfigurable,
            projectRule: projectRule, isPerHost: hosts != nil, alternatives: alternatives)
        self.init(
            row: row, defaultValue: false, check: .none, effect: effect, hosts: hosts,
            property: { Flag(wrappedValue: false, name: row.names, help: row.argumentHelp) },
            parsed: { $0 == .isOn(true) })
    }
}

extension HostEffect {
    /// The same for a flag without a default. In a table it has a value.
    fileprivate var optional: HostEffect<Value?> {
        switch self {
        case .likeRun: .likeRun
        case .entries(let effect):
            .entries { fields, value in
                if let value { try effect(&fields, value) }
            }
        }
    }
}

// MARK: - Values

/// A flag of any type of value.
protocol AnyRunFlag: Sendable {
    var row: FlagRow { get }
    /// The value of a flag that is not given.
    var absent: any Sendable { get }
    /// The property for the parser.
    var argument: Any { get }
    func decode(_ container: KeyedDecodingContainer<FlagKey>) throws -> any Sendable
    /// - Throws: `ValidationError` for a value out of range.
    func check(_ value: any Sendable) throws
    func apply(_ value: any Sendable, to settings: inout RunSettings) throws
    /// Applies a setting of a host's table to the fields of entries, or returns its effect on the
    /// run. It throws for a wrong value, and the effect mostly for files.
    func apply(
        _ setting: ConfigurationSetting.Value, to fields: inout HostFields
    ) throws -> (@Sendable (inout RunSettings) throws -> Void)?
}

extension RunFlag: AnyRunFlag {
    var absent: any Sendable { defaultValue }
    var argument: Any { property() }

    func decode(_ container: KeyedDecodingContainer<FlagKey>) throws -> any Sendable {
        row.value == nil
            ? try container.decode(Flag<Value>.self, forKey: row.key).wrappedValue
            : try container.decode(Option<Value>.self, forKey: row.key).wrappedValue
    }

    func check(_ value: any Sendable) throws {
        if let mistake = check.mistake(cast(value)) {
            throw ValidationError("--\(row.name) \(mistake)")
        }
    }

    func apply(_ value: any Sendable, to settings: inout RunSettings) throws {
        try effect(&settings, cast(value))
    }

    func apply(
        _ setting: ConfigurationSetting.Value, to fields: inout HostFields
    ) throws -> (@Sendable (inout RunSettings) throws -> Void)? {
        let value = try parsed(setting)
        try check(value)
        guard case .entries(let change) = hosts else {
            return { [effect] in try effect(&$0, value) }
        }
        try change(&fields, value)
        return nil
    }

    /// The value of a flag, which ``decode(_:)`` has returned.
    func cast(_ value: (any Sendable)?) -> Value {
        guard let value = value as? Value else {
            preconditionFailure("--\(row.name) has no value of its type")
        }
        return value
    }
}

// MARK: - Single properties

// Other commands have some of the flags.

extension Flag where Value == Bool {
    init(_ flag: RunFlag<Bool>) {
        self.init(
            wrappedValue: flag.defaultValue, name: flag.row.names, help: flag.row.argumentHelp)
    }
}

/// The part of a flag without the type of its value: the facts that help, manual, completions and
/// configuration files need.
struct FlagRow: Sendable {
    /// The long name, without hyphens.
    let name: String
    var short: Character?
    /// Nil for a switch.
    var parameter: FlagParameter?
    /// The description, in full sentences.
    let help: String
    /// The line of the flag on the `-h` page; nil if it isn't on that page.
    let brief: String?
    /// Whether a configuration file or an environment variable may set the flag. False if it
    /// belongs to one call.
    let isConfigurable: Bool
    /// Whether the configuration file of a project, which may be a stranger's, may set the flag.
    let projectRule: ConfigurationKeys.ProjectRule
    /// Whether the table of a host may set the flag.
    let isPerHost: Bool
    /// Environment variables that give the value if the flag doesn't, the first one that is set.
    var environment: [String] = []
    /// The flags that set the same in another way. A higher layer's replaces a lower one's.
    var alternatives: [String] = []
    /// Whether values have credentials, and may be environment variables in a host's table.
    var holdsSecret = false
    /// Values that only `run` takes. For other commands such a setting counts as unset.
    var valuesOfRun: Set<String> = []

    /// The value's name in help; nil for a switch.
    var value: String? { parameter?.name }

    var isRepeatable: Bool { parameter?.isRepeatable == true }

    /// The values of an enumeration; empty for any other flag.
    var choices: [String] { parameter?.type?.allValueStrings ?? [] }

    /// The default as the user would write it; nil without one.
    var defaultText: String? { parameter?.standard?.defaultValueDescription }

    var names: NameSpecification {
        guard let short else { return .customLong(name) }
        return [.customShort(short, allowingJoined: value != nil), .customLong(name)]
    }

    var argumentHelp: ArgumentHelp { ArgumentHelp("\(help)", valueName: value) }

    var completion: CompletionKind? {
        switch value {
        case "file": .file()
        case "dir": .directory
        case _ where name == "profile": .profiles
        default: nil
        }
    }

    /// The name of the parser's property. A dot would separate it from that of a group.
    var key: FlagKey { FlagKey(stringValue: name.replacing(".", with: "_")) }

    /// Reads a value as the parser does, with its message.
    func value<Value: ExpressibleByArgument>(
        in setting: ConfigurationSetting.Value
    ) throws -> Value {
        let text = setting.texts.last ?? ""
        guard let value = Value(argument: text) else {
            throw ValidationError(
                "The value '\(text)' is invalid for '--\(name) <\(self.value ?? "")>'")
        }
        return value
    }
}

struct FlagParameter: Sendable {
    /// The name in help.
    let name: String
    var isRepeatable = false
    var type: (any ExpressibleByArgument.Type)?
    var standard: (any ExpressibleByArgument & Sendable)?
}

/// The name of a property that the parser decodes.
struct FlagKey: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }

    init(stringValue: String) { self.stringValue = stringValue }

    init?(intValue: Int) { nil }
}

/// Calls `body`, and turns its error into one of the parser, behind a prefix.
func validated<Value>(_ prefix: String = "", _ body: () throws -> Value) throws -> Value {
    do {
        return try body()
    } catch let error as UserError {
        throw ValidationError(prefix + error.message)
    }
}

/// The rule for the values of a flag, in addition to their form.
struct ValueCheck<Value>: Sendable {
    /// Returns the end of the message about a wrong value, `must be at least 1`; nil for a right
    /// one.
    let mistake: @Sendable (Value) -> String?

    static var none: ValueCheck { ValueCheck { _ in nil } }
}

extension ValueCheck<Int> {
    static func atLeast(_ least: Int) -> ValueCheck {
        ValueCheck { $0 < least ? "must be at least \(least)" : nil }
    }

    static func between(_ least: Int, _ most: Int) -> ValueCheck {
        ValueCheck { (least...most).contains($0) ? nil : "must be between \(least) and \(most)" }
    }
}

extension ValueCheck<OrAuto<Int>> {
    static func between(_ least: Int, _ most: Int) -> ValueCheck {
        ValueCheck { $0.value.flatMap(ValueCheck<Int>.between(least, most).mistake) }
    }
}

extension ValueCheck<ByteCount> {
    static func atLeast(_ least: ByteCount, _ text: String) -> ValueCheck {
        ValueCheck { $0 < least ? "must be at least \(text)" : nil }
    }
}

extension ValueCheck<Duration> {
    static var positive: ValueCheck {
        ValueCheck { $0 > .zero ? nil : "must be more than 0" }
    }
}

extension ValueCheck<String> {
    static var path: ValueCheck { ValueCheck { $0.isEmpty ? "needs a path" : nil } }

    /// A value of a header field.
    static var printable: ValueCheck {
        ValueCheck { text in
            text.isEmpty || !text.utf8.allSatisfy { (0x21...0x7E).contains($0) }
                ? "takes letters, digits and punctuation" : nil
        }
    }

    /// A file that is replaced at the end.
    static var replacedFile: ValueCheck {
        ValueCheck { $0.isEmpty || $0 == "-" ? "takes a file, and not -" : nil }
    }
}
