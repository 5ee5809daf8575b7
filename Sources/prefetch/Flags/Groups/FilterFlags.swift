import ArgumentParser
import Manifests
import Pipeline
import PrefetchModel

/// Flags of `run` that exclude images.
struct FilterFlags: FlagRows {
    static let flags = FlagTable(FilterFlags())

    let included = RunFlag<[String]>(
        repeatable: "include", value: "glob",
        help: """
            Only entries with a host, or a whole URL if the pattern has a slash, that matches: \
            *.example.com, */photos/*; repeatable.
            """)

    let excluded = RunFlag<[String]>(
        repeatable: "exclude", value: "glob",
        help: "No entries that match likewise, even if --include does; repeatable.")

    let robotsDirectives = RunFlag<String?>(
        "robots-directives", value: "names",
        help: """
            Exclude images if their origin sends one of these directives in X-Robots-Tag, like \
            noai,noimageai.
            """, check: ValueCheck(mistake: FilterFlags.mistake(inDirectives:))
    ) { _ = $0.run.entries.follow(robotsDirectives: $1) }

    let minimumSize = RunFlag<DimensionsArgument?>(
        "min-size", value: "wxh",
        help: """
            Exclude images with a smaller width or height than this, like 256x256, after EXIF orientation is \
            applied.
            """
    ) {
        $0.run.images.filter.minimumWidth = $1.width
        $0.run.images.filter.minimumHeight = $1.height
    }

    let maximumAspect = RunFlag<Double?>(
        "max-aspect", value: "r",
        help: "Exclude images with a longer side of more than this many times the shorter one.",
        check: ValueCheck { $0 >= 1 && $0.isFinite ? nil : "must be at least 1" }
    ) { $0.run.images.filter.maximumAspect = $1 }

    let minimumBytes = RunFlag<ByteCount?>(
        "min-bytes", value: "size",
        help: "Exclude images with a smaller downloaded file."
    ) { $0.run.images.filter.minimumBytes = $1 }

    /// The entries that the patterns select.
    static func combined(_ flags: Flags<FilterFlags>) throws -> EntrySelection {
        func patterns(_ texts: [String], _ flag: String) throws -> [EntrySelection.URLPattern] {
            try texts.map { text in
                guard let pattern = EntrySelection.URLPattern(text) else {
                    throw ValidationError(
                        "\(flag) takes a pattern like *.example.com or */photos/*, in ASCII; "
                            + "URLs have international names as xn--…, and spaces as %20")
                }
                return pattern
            }
        }
        var selection = EntrySelection()
        selection.included = try patterns(flags.included, "--include")
        selection.excluded = try patterns(flags.excluded, "--exclude")
        return selection
    }

    static func mistake(inDirectives names: String) -> String? {
        var rules = EntryChoiceRules()
        return rules.follow(robotsDirectives: names)
            ? nil : "takes names separated by commas, like noai,noimageai"
    }
}
