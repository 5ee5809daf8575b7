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
    /// A table `[variant.NAME]`, `[list.NAME]` or `[host."PATTERN"]` of one file.
    package struct NamedTable: Sendable {
        /// The name, or the pattern of a host.
        package let name: String
        /// The path of the configuration file; its folder is the base of relative paths.
        package var path = ""
        /// Whether the file belongs to an untrusted project. The table of a host then counts only
        /// for hosts without a table of another file.
        package var isForeign = false
        /// At least one, in the order of their lines. Of a variant that a flag defines, it is
        /// `variant` with the text `NAME=SPEC`.
        package let settings: [ConfigurationSetting]
    }

    /// By the name of the flag, without `variant` and `prune`.
    package private(set) var flags: [String: ConfigurationSetting] = [:]
    /// In the order of their definition, lowest layer first.
    package private(set) var variants: [NamedTable] = []
    /// By the name of the rule.
    package private(set) var rules: [ConfigurationSetting] = []
    /// The setting of the key `prune` that replaced the lower layers.
    package private(set) var pruneFlag: ConfigurationSetting?
    package private(set) var lists: [NamedTable] = []
    /// The highest layer first.
    package private(set) var hosts: [NamedTable] = []

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
                variants = setting.value.texts.map { text in
                    let part = ConfigurationSetting(
                        key: setting.key, value: .text(text), origin: setting.origin)
                    return NamedTable(name: String(text.prefix { $0 != "=" }), settings: [part])
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
        var (variants, lists, hosts): ([NamedTable], [NamedTable], [NamedTable]) = ([], [], [])
        for (table, settings) in grouped(settings) {
            func named(_ name: String) -> NamedTable {
                NamedTable(
                    name: name, path: file?.path ?? "", isForeign: file?.isForeign == true,
                    settings: settings)
            }
            switch table {
            case .variant(let name): variants.append(named(name))
            case .list(let name): lists.append(named(name))
            case .host(let pattern): hosts.append(named(pattern))
            case .root, .profile, .prune: break
            }
        }
        self.variants = self.variants.without(variants) + variants
        self.lists = self.lists.without(lists) + lists
        // A stranger's table must not hide the user's proxy or certificates for a host.
        self.hosts =
            file?.isForeign == true
            ? self.hosts + hosts.without(self.hosts) : hosts + self.hosts.without(hosts)
    }

    /// The settings of each table, in the order of the first one.
    private func grouped(
        _ settings: [ConfigurationSetting]
    ) -> [(ConfigurationSetting.Table, [ConfigurationSetting])] {
        var groups: [ConfigurationSetting.Table: [ConfigurationSetting]] = [:]
        var tables: [ConfigurationSetting.Table] = []
        for setting in settings {
            if groups[setting.table] == nil { tables.append(setting.table) }
            groups[setting.table, default: []].append(setting)
        }
        return tables.map { ($0, groups[$0] ?? []) }
    }
}

extension [EffectiveSettings.NamedTable] {
    /// The tables with other names than `others`.
    fileprivate func without(_ others: Self) -> Self {
        let names = Set(others.map(\.name))
        return filter { !names.contains($0.name) }
    }
}
