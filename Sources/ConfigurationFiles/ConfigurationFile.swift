internal import CTOML
package import PrefetchModel

/// A mistake in a configuration file.
package struct ConfigurationProblem: Hashable, Sendable, CustomStringConvertible {
    package let origin: ConfigurationSetting.Origin
    /// One line without a final stop. It repeats keys, but no values, which may be secrets.
    package let message: String
    package let hint: String?

    package var description: String { userError.description }
    package var userError: UserError { UserError(at: origin, message, hint: hint) }
}

extension UserError {
    /// Wrong usage in a setting: `/etc/prefetch/config.toml:3: unknown key 'jbos'`.
    package init(at origin: ConfigurationSetting.Origin, _ message: String, hint: String? = nil) {
        self.init(.usage, "\(origin)", message, hint: hint)
    }
}

/// The settings of one configuration file, and its mistakes.
///
/// The file is TOML 1.0 in UTF-8, of at most 1 MiB:
///
/// - a key of the outermost table is the name of a flag of `run`. A switch takes `true` or `false`,
///   any other flag a string or a decimal number, and a repeatable flag also an array of them;
/// - `[profile.NAME]` holds such keys, too;
/// - `[variant.NAME]` has keys like the flags about encoding, or `spec`;
/// - `[prune]` has the rules of `run --prune`;
/// - `[list.NAME]` has `file`, a string or an array of strings, and flags about manifests;
/// - `[host."PATTERN"]` has flags for the entries of some hosts.
///
/// No value may contain a control character: values become arguments and parts of messages.
package struct ConfigurationFile: Sendable {
    package static let maximumBytes = 1 << 20
    /// Further mistakes are not reported.
    static let maximumProblems = 100
    /// The limits of tables of a kind, and of the values of a key: each becomes an argument.
    static let maximumTables = 256
    static let maximumValues = 256

    package let path: String
    /// In the order of their lines.
    package private(set) var settings: [ConfigurationSetting] = []
    /// The names and lines of `[profile.NAME]`, also of empty ones.
    package private(set) var profiles: [String: Int] = [:]
    /// In the order of their lines.
    package private(set) var problems: [ConfigurationProblem] = []

    /// Whether the file belongs to a project that the user doesn't trust.
    package let isForeign: Bool
    private let keys: ConfigurationKeys
    private let home: String?

    /// Reads a file's bytes. `isForeign`: whether it is the file of an untrusted project; `home`:
    /// the directory that `~` stands for.
    package init(
        _ bytes: [UInt8], path: String, keys: ConfigurationKeys, isForeign: Bool,
        home: String? = nil
    ) {
        self.path = path
        self.keys = keys
        self.home = home
        self.isForeign = isForeign
        guard bytes.count <= ConfigurationFile.maximumBytes else {
            report(
                1, "larger than \(ByteCount(ConfigurationFile.maximumBytes).quantityDescription)")
            return
        }
        let document = TOMLDocument(bytes)
        if let (line, message) = document.mistake {
            report(
                line, message,
                hint: "TOML writes lock = \"skip\", jobs = 8, header = [\"A: b\", \"C: d\"]")
        }
        read(document)
        problems.sort { $0.origin.line < $1.origin.line }
        settings.sort { $0.origin.line < $1.origin.line }
    }

    private mutating func read(_ document: TOMLDocument) {
        for node in document.members {
            let hasTable = node.kind == CTOML_TABLE && ConfigurationKeys.tables.contains(node.key)
            guard hasTable else {
                read([node], of: document, in: .root)
                continue
            }
            let members = document.members(of: node)
            guard node.key != "prune" else {
                read(members, of: document, in: .prune)
                continue
            }
            guard members.count <= ConfigurationFile.maximumTables else {
                report(
                    node.line,
                    "more than \(ConfigurationFile.maximumTables) tables [\(node.key).…]")
                continue
            }
            for member in members { read(member, of: document, in: node.key) }
        }
    }

    /// Reads `[profile.NAME]`, `[variant.NAME]`, `[list.NAME]` or `[host.NAME]`.
    private mutating func read(
        _ node: TOMLDocument.Node, of document: TOMLDocument, in kind: String
    ) {
        guard node.kind == CTOML_TABLE else {
            return report(
                node.line, "'\(node.key)' stands directly in [\(kind)]",
                hint: "a table has a name, like [\(kind).\(kind == "list" ? "shop" : "small")]")
        }
        guard !node.key.isEmpty, !hasControl(node.key) else {
            return report(node.line, "[\(kind)] has a table without a printable name")
        }
        let members = document.members(of: node)
        switch kind {
        case "profile":
            profiles[node.key] = node.line
            read(members, of: document, in: .profile(node.key))
        case "variant":
            guard let name = VariantName(node.key), !name.isNumbered, name != .main else {
                return report(
                    node.line, "'\(node.key)' is no name for a variant",
                    hint: node.key == VariantName.main.text
                        ? "the keys outside of tables make this variant"
                        : "a name has letters, digits, '-', '_' and '.'")
            }
            read(members, of: document, in: .variant(node.key))
            let isWhole = members.contains { $0.key == "spec" }
            if isWhole, let other = members.first(where: { $0.key != "spec" }) {
                report(other.line, "'spec' and '\(other.key)' cannot be combined")
            }
        case "host":
            read(members, of: document, in: .host(node.key))
        default:
            read(members, of: document, in: .list(node.key))
            let files = settings.last {
                $0.table == .list(node.key) && $0.key == ConfigurationKeys.listFile
            }
            if files?.value.texts.isEmpty == true
                || !members.contains(where: { $0.key == ConfigurationKeys.listFile })
            {
                report(node.line, "list '\(node.key)' has no file")
            }
        }
    }

    private mutating func read(
        _ nodes: [TOMLDocument.Node], of document: TOMLDocument,
        in table: ConfigurationSetting.Table
    ) {
        let known = keys.of(table)
        for node in nodes {
            guard let key = known.first(where: { $0.name == node.key }) else {
                reportUnknown(node, in: table, known.map(\.name))
                continue
            }
            guard var value = value(of: node, document, as: key.form) else {
                report(node.line, "'\(key.name)' \(key.form.requirement)")
                continue
            }
            do {
                value = try value.mapTexts { text throws(UserError) in
                    try key.path.expanded(text, home: home)
                }
            } catch {
                report(node.line, "'\(key.name)' \(error.message)", hint: error.hint)
                continue
            }
            guard value.texts.count <= ConfigurationFile.maximumValues else {
                report(
                    node.line,
                    "'\(key.name)' has more than \(ConfigurationFile.maximumValues) values")
                continue
            }
            guard !value.texts.contains(where: hasControl) else {
                report(node.line, "'\(key.name)' contains a control character")
                continue
            }
            guard !isForeign || !isRefused(key, value, in: table) else {
                report(
                    node.line,
                    "a project's file may not set '\(key.name)'"
                        + (isFile(key, in: table)
                            ? " to a URL, or to a file outside of its folder"
                            : key.projectRule.scope),
                    hint: "--trust-project-config allows it")
                continue
            }
            if let mistake = value.texts.lazy.compactMap(key.mistake).first {
                report(node.line, "'\(key.name)' \(mistake)")
                continue
            }
            settings.append(
                ConfigurationSetting(
                    table: table, key: key.name, value: value,
                    origin: .file(path, line: node.line)))
        }
    }

    private func value(
        of node: TOMLDocument.Node, _ document: TOMLDocument, as form: ConfigurationKeys.Form
    ) -> ConfigurationSetting.Value? {
        switch (form, node.kind) {
        case (.isOn, CTOML_BOOLEAN): .isOn(node.text == "true")
        case (.text, CTOML_STRING), (.text, CTOML_INTEGER), (.text, CTOML_FLOAT): .text(node.text)
        case (.texts, CTOML_STRING), (.texts, CTOML_INTEGER), (.texts, CTOML_FLOAT):
            .texts([node.text])
        case (.texts, CTOML_ARRAY): texts(document.members(of: node))
        default: nil
        }
    }

    private func texts(_ elements: [TOMLDocument.Node]) -> ConfigurationSetting.Value? {
        let kinds = [CTOML_STRING, CTOML_INTEGER, CTOML_FLOAT]
        return elements.allSatisfy { kinds.contains($0.kind) } ? .texts(elements.map(\.text)) : nil
    }

    /// A list of an untrusted project lies in its folder. A run would send the lines of any other
    /// file to the list's base URL, and a URL may be one of the user's network.
    private func isRefused(
        _ key: ConfigurationKeys.Key, _ value: ConfigurationSetting.Value,
        in table: ConfigurationSetting.Table
    ) -> Bool {
        if case .host = table,
            value.texts.contains(where: {
                ConfigurationKeys.ProjectRule.startOfVariable(in: $0) != nil
            })
        {
            // Its value could be sent anywhere.
            return true
        }
        guard isFile(key, in: table) else { return key.projectRule.refuses(value) }
        return value.texts.contains { path in
            path.hasPrefix("/") || path.contains("://")
                || path.split(separator: "/").contains("..")
        }
    }

    /// Whether a key names the file of a list.
    private func isFile(_ key: ConfigurationKeys.Key, in table: ConfigurationSetting.Table) -> Bool
    {
        if case .list = table { key.name == ConfigurationKeys.listFile } else { false }
    }

    private mutating func reportUnknown(
        _ node: TOMLDocument.Node, in table: ConfigurationSetting.Table, _ known: [String]
    ) {
        // A file of unknown keys must not take long.
        guard problems.count < ConfigurationFile.maximumProblems else { return }
        let isTable = node.kind == CTOML_TABLE
        if table.holdsFlags, !isTable, keys.commandLineFlags.contains(node.key) {
            return report(
                node.line, "'\(node.key)' belongs to one call, so no file sets it",
                hint: "give --\(node.key) on the command line")
        }
        let names = table == .root && isTable ? ConfigurationKeys.tables : known
        let near = ConfigurationKeys.nearest(to: node.key, of: names)
        let all =
            table.holdsFlags && !isTable
            ? "keys are the names of flags, see `prefetch run --help`"
            : "known are \(names.sorted().listed(with: "and"))"
        report(
            node.line, "unknown \(isTable ? "table" : "key") '\(node.key)'",
            hint: near.map { "did you mean '\($0)'?" } ?? all)
    }

    private mutating func report(_ line: Int, _ message: String, hint: String? = nil) {
        guard problems.count < ConfigurationFile.maximumProblems else { return }
        problems.append(
            ConfigurationProblem(
                origin: .file(path, line: max(1, line)), message: message, hint: hint))
    }

    private func hasControl(_ text: String) -> Bool {
        text.utf8.contains { $0 < 0x20 && $0 != 0x09 || $0 == 0x7F }
    }
}
