import CacheStorage
import ConfigurationFiles
import PrefetchModel

extension ConfigurationKeys {
    static let ofRun = ConfigurationKeys(
        flags: RunFlags.all.filter(\.isConfigurable).map { Key($0) },
        commandLineFlags: RunFlags.all.filter { !$0.isConfigurable }.map(\.name),
        variant: [Key("spec", .text, .refusedWithOverlays, path: .overlays)]
            + RunFlags.all.filter(\.isItemOfVariant).map(Key.init(itemOf:)),
        prune: PruneRule.allCases.map(Key.init(_:)),
        // Its files are checked in another way, so it may have a base URL.
        list: [Key(ConfigurationKeys.listFile, .texts, path: .whole)]
            + NamedListFlags.flags.all.map(\.row).filter(\.isOfList).map {
                Key($0.name, $0.form)
            },
        host: RunFlags.perHost.map(\.row).map { Key($0) })
}

extension ConfigurationKeys.Key {
    fileprivate init(_ row: FlagRow) {
        self.init(row.name, row.form, row.projectRule, path: row.path)
    }

    fileprivate init(itemOf row: FlagRow) {
        self.init(row.name, row.form, row.projectRule, path: row.path) {
            Recipe.mistake(in: $0, ofFlag: row.name)
        }
    }

    fileprivate init(_ rule: PruneRule) {
        let form: ConfigurationKeys.Form = rule.unit == .none ? .isOn : .text
        self.init(rule.rawValue, form, DiskFlags.flags.prune.row.projectRule) { value in
            rule.setting(value) == nil ? rule.requirement : nil
        }
    }
}

extension ConfigurationFile {
    /// Reads the bytes of a file with the keys of `run`.
    init(_ bytes: [UInt8], path: String, isForeign: Bool = false) {
        self.init(
            bytes, path: path, keys: .ofRun, isForeign: isForeign, home: HomeDirectory.path)
    }
}

extension FlagRow {
    /// The place of file names in values.
    var path: PathForm {
        switch value {
        case "file", "dir": .whole
        case _ where holdsSecret: .afterAt
        case _ where projectRule == .refusedWithOverlays: .overlays
        default: .none
        }
    }

    fileprivate var form: ConfigurationKeys.Form {
        value == nil ? .isOn : isRepeatable ? .texts : .text
    }

    /// Whether the flag may differ between lists: keys are the same for all.
    fileprivate var isOfList: Bool {
        ![KeyFlags.flags.ignoredQuery.row.name, LocalFileFlags.flags.filesBelow.row.name]
            .contains(name)
    }

    /// Whether the flag has an item in the SPEC of a variant.
    fileprivate var isItemOfVariant: Bool {
        Recipe.specificationItem(flag: name, value: value) != nil
    }
}

extension EffectiveSettings.NamedTable {
    /// A variant as `--variant` takes it: `NAME=SPEC`.
    var variantArgument: String {
        let flag = settings.first { $0.key == EncodingFlags.flags.variants.row.name }
        if let text = flag?.value.texts.first { return text }
        // As for the plain flags, the size is applied after all steps.
        let ordered =
            settings.filter { $0.key != "resize" } + settings.filter { $0.key == "resize" }
        let items = ordered.compactMap { setting -> String? in
            switch setting.value {
            case .isOn(false): nil
            case .isOn(true): Recipe.specificationItem(flag: setting.key, value: nil)
            case .text(let text) where setting.key == "spec": text
            case .text(let text): Recipe.specificationItem(flag: setting.key, value: text)
            case .texts: nil
            }
        }
        return
            "\(name)=\(items.isEmpty ? Recipe().encoding.rawValue : items.joined(separator: ","))"
    }
}

extension EffectiveSettings {
    /// The rules of the key `prune` and of `[prune]`, as `--prune` takes them; nil without any.
    var pruneArgument: String? {
        let names = Set(rules.map(\.key))
        let items = (pruneFlag?.value.texts.first ?? "").split(separator: ",").filter {
            !names.contains($0.prefix { $0 != "=" }.filter { $0 != " " })
        }
        let added = rules.compactMap { setting -> String? in
            switch setting.value {
            case .isOn(let isOn): isOn ? setting.key : nil
            case .text(let text): "\(setting.key)=\(text)"
            case .texts: nil
            }
        }
        let all = items.map(String.init) + added
        return all.isEmpty ? nil : all.joined(separator: ",")
    }
}
