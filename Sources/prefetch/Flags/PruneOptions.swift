import ArgumentParser
import CacheStorage
import PrefetchModel

/// The rules of `prune`: an option for each ``PruneRule`` with a value, and the rules for one
/// pruning alone.
struct PruneOptions: ParsableArguments {
    @Option(.maxSize) var maxSize: PruneRule.Setting?
    @Option(.maxFiles) var maxFiles: PruneRule.Setting?
    @Option(.lowWater) var lowWater = PruneRule.Setting(
        rule: .lowWater, value: PruneRule.defaultLowWater.millionths)
    @Option(.unlistedFor) var unlistedFor: PruneRule.Setting?
    @Option(.unusedFor) var unusedFor: PruneRule.Setting?

    @Option(
        parsing: .upToNextOption,
        help: .value("manifest", "Images that none of these manifests lists; - is standard input."),
        completion: .lists)
    var unlisted: [String] = []

    @Option(.expiredFor) var expiredFor: PruneRule.Setting?
    @Flag var rulesWithoutValue: [PruneRuleFlag] = []
    @Option(.variantsUnusedFor) var variantsUnusedFor: PruneRule.Setting?

    @Option(
        help: .value("name|recipe", "The variant with this name or recipe, of every image."),
        completion: .storedVariants)
    var variant: String?

    @Option(
        help: .value(
            "host",
            "Images of this host: example.com (any port), example.com:8080 or https://example.com."),
        completion: .storedHosts)
    var host: [HostName] = []

    @Option(.history) var history: PruneRule.Setting?

    var isAnyGiven: Bool {
        !PruneRules(settings).isEmpty || !unlisted.isEmpty || variant != nil || !host.isEmpty
    }

    /// The values of the options above. Reflection finds them, as it does for the parser, so that
    /// no list can lack one.
    private var settings: [PruneRule.Setting] {
        let options = Mirror(reflecting: self).children.compactMap { child in
            switch child.value {
            case let option as Option<PruneRule.Setting?>: option.wrappedValue
            case let option as Option<PruneRule.Setting>: option.wrappedValue
            default: nil
            }
        }
        return options + rulesWithoutValue.compactMap { $0.rule.setting(nil) }
    }

    /// All rules except the manifests of `--unlisted`.
    func rules(in catalog: CacheCatalog) throws -> PruneRules {
        var rules = PruneRules(settings)
        rules.variant = try variant.map(catalog.selector)
        if !host.isEmpty {
            rules.isOfHost = { [host] origin in host.contains { $0.matches(origin: origin) } }
        }
        return rules
    }
}

/// The flag of a rule that has no value.
struct PruneRuleFlag: EnumerableFlag {
    let rule: PruneRule

    static let allCases = PruneRule.allCases.filter { $0.unit == .none }.map(PruneRuleFlag.init)

    static func name(for value: PruneRuleFlag) -> NameSpecification {
        .customLong(value.rule.rawValue)
    }

    static func help(for value: PruneRuleFlag) -> ArgumentHelp? {
        ArgumentHelp(value.rule.help)
    }
}

extension Option where Value == PruneRule.Setting? {
    fileprivate init(_ rule: PruneRule) {
        self.init(name: .customLong(rule.rawValue), help: rule.argumentHelp) {
            try rule.parse($0)
        }
    }
}

extension Option where Value == PruneRule.Setting {
    fileprivate init(wrappedValue: PruneRule.Setting, _ rule: PruneRule) {
        self.init(
            wrappedValue: wrappedValue, name: .customLong(rule.rawValue), help: rule.argumentHelp
        ) { try rule.parse($0) }
    }
}

extension PruneRule {
    fileprivate var argumentHelp: ArgumentHelp {
        let valueName =
            switch unit {
            case .none: ""
            case .age: "duration"
            case .size: "size"
            case .count: "n"
            case .share: "p%"
            }
        return ArgumentHelp(help, valueName: valueName)
    }

    /// - Throws: `ValidationError` with the form of a value.
    fileprivate func parse(_ text: String?) throws -> Setting {
        guard let setting = setting(text) else { throw ValidationError("it \(requirement)") }
        return setting
    }
}

extension PruneRules {
    /// Reads the value of `run --prune`: rules of `prune` by the names of their flags, separated by
    /// commas. At least one must remove something.
    init(specification text: String) throws {
        var settings: [PruneRule.Setting] = []
        for item in text.replacing(" ", with: "").split(
            separator: ",", omittingEmptySubsequences: false)
        {
            let parts = item.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            func invalid(_ problem: String) -> ValidationError {
                ValidationError("--prune '\(item)': \(problem)")
            }
            guard let rule = PruneRule(rawValue: String(parts[0])) else {
                let names = PruneRule.allCases.map(\.rawValue).joined(separator: ", ")
                let meant = PruneRule.allCases.first { String(parts[0]).isNearly($0.rawValue) }
                let guess = meant.map { " (did you mean '\($0.rawValue)'?)" } ?? ""
                throw invalid("unknown rule\(guess); the rules are \(names)")
            }
            guard !settings.contains(where: { $0.rule == rule }) else {
                throw invalid("\(rule.rawValue) is given twice")
            }
            guard let setting = rule.setting(parts.count > 1 ? String(parts[1]) : nil) else {
                throw invalid(rule.requirement)
            }
            settings.append(setting)
        }
        self.init(settings)
        guard !isEmpty else {
            throw ValidationError(
                "--prune \(text): names nothing to remove; add a rule such as max-size=20GiB")
        }
    }
}
