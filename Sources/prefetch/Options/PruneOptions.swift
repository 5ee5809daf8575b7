import ArgumentParser
import CacheStorage
import PrefetchModel

/// The rules of `prune`.
struct PruneOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Keep the content files within this size on the disk.", valueName: "size"))
    var maxSize: BoundArgument?

    @Option(
        help: ArgumentHelp("Keep no more content files than this.", valueName: "n"))
    var maxFiles: Int?

    @Option(
        help: ArgumentHelp(
            "How full to leave the cache once a bound is exceeded, as a share of it.",
            valueName: "p%"))
    var lowWater = ShareArgument(0.9)

    @Option(
        help: ArgumentHelp(
            """
            Images that no run has listed for this time, counted back from the last run that listed any. \
            Runs note what they list since the version that has `prune`; before that nothing counts as \
            unlisted.
            """, valueName: "duration"))
    var unlistedFor: AgeArgument?

    @Option(
        parsing: .upToNextOption,
        help: ArgumentHelp(
            "Images that none of these manifests names; - is standard input.",
            valueName: "manifest"))
    var unlisted: [String] = []

    @Option(
        help: ArgumentHelp("Images that have been stale for this time.", valueName: "duration"))
    var expiredFor: AgeArgument?

    @Flag(help: "Images whose URLs are blacklisted since they answer 404 or 410.")
    var gone = false

    @Option(
        help: ArgumentHelp(
            """
            Variants that no run has used for this time, counted back from the last run: others have \
            superseded them, or no run has asked for their name.
            """, valueName: "duration"))
    var variantsUnusedFor: AgeArgument?

    @Option(
        help: ArgumentHelp(
            "The variant of this name or recipe of every image.", valueName: "name|recipe"))
    var variant: String?

    @Option(
        help: ArgumentHelp(
            "Images of this host: example.com (any port), example.com:8080 or https://example.com.",
            valueName: "host"))
    var host: [HostName] = []

    @Option(
        help: ArgumentHelp(
            """
            What is remembered of failures, hosts, runs and broken downloads from before this time, but \
            for what still blocks.
            """, valueName: "duration"))
    var history: AgeArgument?

    var isAnyGiven: Bool {
        maxSize != nil || maxFiles != nil || unlistedFor != nil || !unlisted.isEmpty
            || expiredFor != nil || gone || variantsUnusedFor != nil || variant != nil
            || !host.isEmpty || history != nil
    }

    func validate() throws {
        if let maxFiles, maxFiles < 0 { throw ValidationError("--max-files takes 0 or more") }
    }

    /// All but the lists of `--unlisted`.
    ///
    /// - Throws: when `--variant` names nothing.
    func rules(in catalog: CacheCatalog) throws -> PruneRules {
        var rules = PruneRules()
        rules.maximumSize = maxSize?.size
        rules.maximumFiles = maxFiles
        rules.lowWater = lowWater.share
        rules.unlistedFor = unlistedFor?.duration
        rules.expiredFor = expiredFor?.duration
        rules.isGone = gone
        rules.variantsUnusedFor = variantsUnusedFor?.duration
        rules.variant = try variant.map(catalog.selector)
        if !host.isEmpty {
            rules.isOfHost = { [host] origin in host.contains { $0.matches(origin: origin) } }
        }
        rules.history = history?.duration
        return rules
    }
}

extension PruneRules {
    /// Takes what `run --prune` is given: rules by the names of the flags of `prune`, joined by commas.
    ///
    /// - Throws: `ValidationError` for what is no rule.
    init(specification text: String) throws {
        self.init()
        var given: Set<Substring> = []
        for item in text.replacing(" ", with: "").split(
            separator: ",", omittingEmptySubsequences: false)
        {
            let parts = item.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let value = parts.count > 1 ? String(parts[1]) : nil
            func invalid(_ wanted: String) -> ValidationError {
                ValidationError("--prune '\(item)': \(wanted)")
            }
            guard given.insert(parts[0]).inserted else {
                throw invalid("\(parts[0]) is given twice")
            }
            func duration() throws -> Duration {
                guard let argument = value.flatMap(AgeArgument.init(argument:)) else {
                    throw invalid("takes a duration with a unit, like \(parts[0])=30d")
                }
                return argument.duration
            }
            switch parts[0] {
            case "unlisted-for": unlistedFor = try duration()
            case "expired-for": expiredFor = try duration()
            case "variants-unused-for": variantsUnusedFor = try duration()
            case "history": history = try duration()
            case "gone":
                guard value == nil else { throw invalid("takes no value") }
                isGone = true
            case "max-size":
                guard let size = value.flatMap(BoundArgument.init(argument:)) else {
                    throw invalid("takes a size with its unit, like max-size=20GiB")
                }
                maximumSize = size.size
            case "max-files":
                guard let count = value.flatMap({ Int($0) }), count >= 0 else {
                    throw invalid("takes a number, like max-files=100000")
                }
                maximumFiles = count
            case "low-water":
                guard let share = value.flatMap(ShareArgument.init(argument:)) else {
                    throw invalid("takes a percentage, like low-water=90%")
                }
                lowWater = share.share
            default:
                throw invalid(
                    """
                    is not a rule; the rules are unlisted-for, expired-for, gone, variants-unused-for, \
                    history, max-size, max-files and low-water
                    """)
            }
        }
        guard !isEmpty else {
            throw ValidationError(
                "--prune \(text): names nothing to remove; add a rule such as max-size=20GiB")
        }
    }

    /// The rules as `run --prune` takes them. Those that it does not take are left out.
    var specification: String {
        var items: [String] = []
        func add(_ name: String, _ value: String?) {
            if let value { items.append("\(name)=\(value)") }
        }
        add("unlisted-for", unlistedFor?.quantityDescription)
        add("expired-for", expiredFor?.quantityDescription)
        if isGone { items.append("gone") }
        add("variants-unused-for", variantsUnusedFor?.quantityDescription)
        add("history", history?.quantityDescription)
        add("max-size", maximumSize?.quantityDescription)
        add("max-files", maximumFiles.map { "\($0)" })
        if maximumSize != nil || maximumFiles != nil {
            add("low-water", ShareArgument(lowWater).defaultValueDescription)
        }
        return items.joined(separator: ",")
    }
}
