/// A key of a configuration file or an environment variable, and its value.
package struct ConfigurationSetting: Hashable, Sendable {
    /// The table that holds the key.
    package enum Table: Hashable, Sendable {
        case root
        case profile(String)
        case variant(String)
        case prune
        case list(String)
        /// The value is a pattern of host names.
        case host(String)

        /// Whether the keys of the table are the names of flags of `run`.
        var holdsFlags: Bool {
            switch self {
            case .root, .profile: true
            case .variant, .prune, .list, .host: false
            }
        }

        /// Whether the table counts in every profile.
        var isShared: Bool { if case .profile = self { false } else { true } }
    }

    package enum Value: Hashable, Sendable {
        case isOn(Bool)
        /// A string, or a number in decimal notation.
        case text(String)
        /// The values of a repeatable flag.
        case texts([String])

        /// The value's texts; none for a switch.
        package var texts: [String] {
            switch self {
            case .isOn: []
            case .text(let text): [text]
            case .texts(let texts): texts
            }
        }

        /// The same form with changed texts.
        package func mapTexts<E: Error>(_ change: (String) throws(E) -> String) throws(E) -> Value {
            switch self {
            case .isOn: self
            case .text(let text): .text(try change(text))
            case .texts(let texts): .texts(try texts.map(change))
            }
        }
    }

    /// The place of a setting.
    package enum Origin: Hashable, Sendable, CustomStringConvertible {
        /// A line, from 1, of a file with this path.
        case file(String, line: Int)
        case variable(String)

        /// `/etc/prefetch/config.toml:3` or `PREFETCH_JOBS`
        package var description: String {
            switch self {
            case .file(let path, let line): "\(path):\(line)"
            case .variable(let name): name
            }
        }

        /// The line in the file; 0 for a variable.
        package var line: Int {
            if case .file(_, let line) = self { line } else { 0 }
        }
    }

    package let table: Table
    /// A flag's name without hyphens, or the name of a rule of `prune`.
    package let key: String
    package let value: Value
    package let origin: Origin

    package init(table: Table = .root, key: String, value: Value, origin: Origin) {
        self.table = table
        self.key = key
        self.value = value
        self.origin = origin
    }
}
