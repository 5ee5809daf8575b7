/// The settings of all layers together.
///
/// For each key the highest source decides, of
///
/// 1. environment variables,
/// 2. the profile, in the project's file, the user's, the system's,
/// 3. the outermost tables, in the same order of files.
///
/// A table adds to the lower layers: `[variant.NAME]` replaces only the variant of that name, and a
/// rule of `[prune]` only the same rule. The keys `variant` and `prune` replace all of them. A list
/// is replaced as a whole, and so is the table of a pattern of hosts.
package struct EffectiveSettings: Sendable {
    /// A variant, as the value of a flag or as keys of a table.
    package struct VariantTable: Sendable {
        package let name: String
        /// `NAME=SPEC`; nil for a table.
        package let text: String?
        /// The keys of the table, in the order of their lines.
        package let settings: [ConfigurationSetting]
        package let origin: ConfigurationSetting.Origin
    }

    package struct ListTable: Sendable {
        package let name: String
        /// The path of the configuration file; its folder is the base of relative paths.
        package let path: String
        /// Whether the file belongs to an untrusted project.
        package let isForeign: Bool
        package let settings: [ConfigurationSetting]
    }

    package struct HostPatternTable: Sendable {
        package let pattern: String
        package let settings: [ConfigurationSetting]
        /// Whether the file belongs to an untrusted project. The table counts only for hosts
        /// without a table of another file.
        package let isForeign: Bool
    }

    /// By the name of the flag, without `variant` and `prune`.
    package private(set) var flags: [String: ConfigurationSetting] = [:]
    /// In the order of their definition, lowest layer first.
    package private(set) var variants: [VariantTable] = []
    /// The setting of the key `variant` that replaced the lower layers, though it be empty.
    package private(set) var variantFlag: ConfigurationSetting?
    /// By the name of the rule.
    package private(set) var rules: [ConfigurationSetting] = []
    /// The setting of the key `prune` that replaced the lower layers.
    package private(set) var pruneFlag: ConfigurationSetting?
    package private(set) var lists: [ListTable] = []
    /// The highest layer first.
    package private(set) var hosts: [HostPatternTable] = []

    /// The names of all profiles, sorted.
    package let profiles: [String]

    private let spellings: [Set<String>]

    /// Combines the files, the highest first, with environment variables. Of flags that set the
    /// same, `spellings`, a higher layer's replaces a lower one's.
    package init(
        files: [ConfigurationFile], variables: [ConfigurationSetting] = [], profile: String? = nil,
        spellings: [Set<String>] = []
    ) {
        self.spellings = spellings
        profiles = Set(files.flatMap(\.profiles.keys)).sorted()
        for file in files.reversed() { add(file.settings.filter { $0.table.isShared }, file) }
        if let profile {
            for file in files.reversed() {
                add(file.settings.filter { $0.table == .profile(profile) }, file)
            }
        }
        add(variables, nil)
    }

    /// Adds the settings of a source, which are stronger than all before.
    private mutating func add(_ settings: [ConfigurationSetting], _ file: ConfigurationFile?) {
        for set in spellings
        where settings.contains(where: {
            $0.table.holdsFlags && set.contains($0.key) && $0.value != .isOn(false)
        }) {
            for key in set { flags[key] = nil }
        }
        // The key and the tables cannot both define the same name in a file.
        for setting in settings where setting.table.holdsFlags {
            switch setting.key {
            case "variant":
                variantFlag = setting
                variants = setting.value.texts.map { text in
                    let name = text.prefix { $0 != "=" }
                    return VariantTable(
                        name: String(name), text: text, settings: [], origin: setting.origin)
                }
            case "prune":
                pruneFlag = setting
                rules = []
            default: flags[setting.key] = setting
            }
        }
        for setting in settings where setting.table == .prune {
            rules.removeAll { $0.key == setting.key }
            rules.append(setting)
        }
        addVariants(settings)
        if let file { addLists(settings, file) }
        let isForeign = file?.isForeign == true
        let hosts = grouped(settings) { $0.hostPattern }
            .map { HostPatternTable(pattern: $0, settings: $1, isForeign: isForeign) }
        // A stranger's table must not hide the user's proxy or certificates for a host.
        guard !isForeign else {
            let known = Set(self.hosts.map(\.pattern))
            self.hosts += hosts.filter { !known.contains($0.pattern) }
            return
        }
        let patterns = Set(hosts.map(\.pattern))
        self.hosts.removeAll { patterns.contains($0.pattern) }
        self.hosts.insert(contentsOf: hosts, at: 0)
    }

    private mutating func addVariants(_ settings: [ConfigurationSetting]) {
        let groups = grouped(settings) { $0.variantName }
        let names = Set(groups.map(\.0))
        variants.removeAll { names.contains($0.name) }
        variants += groups.map { name, settings in
            VariantTable(name: name, text: nil, settings: settings, origin: settings[0].origin)
        }
    }

    private mutating func addLists(_ settings: [ConfigurationSetting], _ file: ConfigurationFile) {
        let groups = grouped(settings) { $0.listName }
        let names = Set(groups.map(\.0))
        lists.removeAll { names.contains($0.name) }
        lists += groups.map { name, settings in
            ListTable(name: name, path: file.path, isForeign: file.isForeign, settings: settings)
        }
    }

    /// The settings of each name, in the order of the first one.
    private func grouped(
        _ settings: [ConfigurationSetting], by name: (ConfigurationSetting.Table) -> String?
    ) -> [(String, [ConfigurationSetting])] {
        var groups: [String: [ConfigurationSetting]] = [:]
        var names: [String] = []
        for setting in settings {
            guard let name = name(setting.table) else { continue }
            if groups[name] == nil { names.append(name) }
            groups[name, default: []].append(setting)
        }
        return names.map { ($0, groups[$0] ?? []) }
    }
}

extension ConfigurationSetting.Table {
    /// Whether the table counts in every profile.
    fileprivate var isShared: Bool {
        if case .profile = self { false } else { true }
    }

    fileprivate var variantName: String? {
        if case .variant(let name) = self { name } else { nil }
    }

    fileprivate var hostPattern: String? {
        if case .host(let pattern) = self { pattern } else { nil }
    }

    fileprivate var listName: String? {
        if case .list(let name) = self { name } else { nil }
    }
}
