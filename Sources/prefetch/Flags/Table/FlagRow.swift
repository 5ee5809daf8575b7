import ArgumentParser
import ConfigurationFiles
import PrefetchModel

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

    /// A file that is replaced at the end.
    static var replacedFile: ValueCheck {
        ValueCheck { $0.isEmpty || $0 == "-" ? "takes a file, and not -" : nil }
    }
}
