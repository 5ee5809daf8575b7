import ArgumentParser
import ConfigurationFiles
import Glibc
import PrefetchModel

/// The part of a flag without the type of its value: the facts that help, manual, completions and
/// configuration files need.
struct FlagRow: Sendable {
    /// The long name, without hyphens.
    let name: String
    var short: Character?
    /// The value's name in help; nil for a switch.
    var value: String?
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
    var isRepeatable = false
    /// Environment variables that give the value if the flag doesn't, the first one that is set.
    var environment: [String] = []
    /// The flags that set the same in another way. A higher layer's replaces a lower one's.
    var alternatives: [String] = []
    /// Whether values have credentials, and may be environment variables in a host's table.
    var holdsSecret = false
    var valueType: (any ExpressibleByArgument.Type)?
    var defaultValue: (any ExpressibleByArgument & Sendable)?
}

extension FlagRow {
    /// The values of an enumeration; empty for any other flag.
    var choices: [String] { valueType?.allValueStrings ?? [] }

    /// The default as the user would write it; nil without one.
    var defaultText: String? { defaultValue?.defaultValueDescription }

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

/// The name of a property that the parser decodes.
struct FlagKey: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }

    init(stringValue: String) { self.stringValue = stringValue }

    init?(intValue: Int) { nil }
}
