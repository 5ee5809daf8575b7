internal import PrefetchModel

/// The keys of configuration files, by table.
package struct ConfigurationKeys: Sendable {
    package struct Key: Sendable {
        package let name: String
        package let form: Form
        package let projectRule: ProjectRule
        package let path: PathForm
        /// The mistake in a value that is joined with others to a larger text, as the end of a
        /// message: `takes 1 to 100`. All other values are read by their own flags.
        package let mistake: @Sendable (String) -> String?

        package init(
            _ name: String, _ form: Form, _ projectRule: ProjectRule = .allowed,
            path: PathForm = .none,
            mistake: @escaping @Sendable (String) -> String? = { _ in nil }
        ) {
            self.name = name
            self.form = form
            self.projectRule = projectRule
            self.path = path
            self.mistake = mistake
        }
    }

    package enum Form: Sendable {
        case isOn
        case text
        /// Repeatable.
        case texts

        var requirement: String {
            switch self {
            case .isOn: "takes true or false"
            case .text: "takes a text in quotes or a decimal number"
            case .texts: "takes a text in quotes, or an array of texts"
            }
        }
    }

    /// Whether the file of a project may set a key. The project may be a stranger's.
    package enum ProjectRule: Sendable {
        case allowed
        /// The key reads secrets, writes or removes files elsewhere, or weakens security.
        case refused
        /// `Name: value`, or `@FILE`: only fields without credentials are allowed.
        case refusedWithSecrets
        /// Steps of an image: only those without a file are allowed.
        case refusedWithOverlays

        /// The refused values, for a message.
        var scope: String {
            switch self {
            case .allowed, .refused: ""
            case .refusedWithSecrets: " to credentials"
            case .refusedWithOverlays: " to overlays, which are files"
            }
        }

        /// Whether the file of an untrusted project must not set a key to these values.
        func refuses(_ value: ConfigurationSetting.Value) -> Bool {
            switch self {
            case .allowed: false
            case .refused: true
            case .refusedWithSecrets: value.texts.contains(where: Self.holdsSecret)
            case .refusedWithOverlays: value.texts.contains { $0.contains("overlay") }
            }
        }

        /// The names of fields with credentials, in lower case.
        private static let secretFields: Set<String> = [
            "authorization", "cookie", "proxy-authorization",
        ]

        /// The index of the dollar sign in `$NAME`, or in `Name: $NAME` of a header field; nil if
        /// the value names no environment variable.
        package static func startOfVariable(in text: String) -> String.Index? {
            let afterName = text.firstIndex(of: ":").map { text.index(after: $0) }
            for start in [text.startIndex, afterName].compactMap(\.self) {
                guard let dollar = text[start...].firstIndex(where: { $0 != " " }),
                    text[dollar] == "$"
                else { continue }
                let name = text[dollar...].dropFirst()
                let isName = name.utf8.allSatisfy {
                    $0.isLetter || $0.isDecimalDigit || $0 == UInt8(ascii: "_")
                }
                if isName, !name.isEmpty { return dollar }
            }
            return nil
        }

        /// Whether a header field, `Name: value` or `@FILE`, holds credentials or may hold them.
        private static func holdsSecret(_ field: String) -> Bool {
            let name = field.prefix { $0 != ":" }.filter { $0 != " " && $0 != "\t" }
            return field.utf8.first == UInt8(ascii: "@") || startOfVariable(in: field) != nil
                || secretFields.contains(name.lowercased())
        }
    }

    /// The keys of the outermost table and of profiles.
    package var flags: [Key]
    /// Flags that belong to a single call.
    package var commandLineFlags: [String]
    package var variant: [Key]
    package var prune: [Key]
    /// The keys of `[list.NAME]`; ``listFile`` is one of them.
    package var list: [Key]
    package var host: [Key]

    package init(
        flags: [Key], commandLineFlags: [String], variant: [Key], prune: [Key], list: [Key],
        host: [Key]
    ) {
        self.flags = flags
        self.commandLineFlags = commandLineFlags
        self.variant = variant
        self.prune = prune
        self.list = list
        self.host = host
    }

    /// The key of `[list.NAME]` for its files and URLs.
    package static let listFile = "file"

    /// The tables of the outermost one.
    static let tables = ["host", "list", "profile", "prune", "variant"]

    func of(_ table: ConfigurationSetting.Table) -> [Key] {
        switch table {
        case .root, .profile: flags
        case .variant: variant
        case .prune: prune
        case .list: list
        case .host: host
        }
    }

    /// The name that a misspelled word probably means.
    static func nearest(to word: String, of names: [String]) -> String? {
        let plain = word.lowercased().replacing("_", with: "-")
        return names.first { $0 == plain } ?? names.first { plain.isNearly($0) }
    }
}
