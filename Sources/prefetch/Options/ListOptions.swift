import ArgumentParser
import CacheStorage
import PrefetchModel
import Upkeep

extension ImageFormat: ExpressibleByArgument {
    /// Also by the usual extension of its files.
    package init?(argument: String) {
        let name = argument.lowercased()
        guard
            let format = ImageFormat(rawValue: name)
                ?? ImageFormat.allCases.first(where: { $0.fileExtension == name })
        else { return nil }
        self = format
    }
}

extension ListSelection.Order: ExpressibleByArgument {}

/// Flags of `list` about which images are shown, and in what order.
struct ListOptions: ParsableArguments {
    @OptionGroup var hosts: HostFilter

    @Option(help: ArgumentHelp("Only images that are stored in this format: jpeg, png, webp, …"))
    var format: [ImageFormat] = []

    @Option(
        name: .customLong("min-bytes"),
        help: ArgumentHelp("Only files of this size or larger.", valueName: "size"))
    var minimumBytes: SizeArgument?

    @Option(
        name: .customLong("max-bytes"),
        help: ArgumentHelp("Only files of this size or smaller.", valueName: "size"))
    var maximumBytes: SizeArgument?

    @Option(
        name: .customLong("older-than"),
        help: ArgumentHelp(
            "Only images that were downloaded longer ago than this.", valueName: "duration"))
    var olderThan: DurationArgument?

    @Option(
        name: .customLong("newer-than"),
        help: ArgumentHelp(
            "Only images that were downloaded within this time.", valueName: "duration"))
    var newerThan: DurationArgument?

    @Flag(help: "Only images that are fresh.")
    var fresh = false

    @Flag(help: "Only images that are not fresh.")
    var expired = false

    @Option(
        name: .customLong("expires-within"),
        help: ArgumentHelp(
            "Only images that are not fresh, or will not be in this time.", valueName: "duration"))
    var expiresWithin: DurationArgument?

    @Option(
        help: ArgumentHelp(
            """
            Only the variant of this name, with those that it has superseded, or the variant of this \
            recipe, as `list --json` names it.
            """, valueName: "name|recipe"))
    var variant: String?

    @Option(
        help: """
            Sort by key, bytes (the largest first), age (the oldest first), expiry (what expires first) \
            or host.
            """)
    var sort = ListSelection.Order.key

    @Flag(help: "Sort the other way round.")
    var reverse = false

    @Option(
        name: [.customShort("n", allowingJoined: true), .customLong("limit")],
        help: ArgumentHelp("Show only the first N of these images.", valueName: "n"))
    var limit: Int?

    func validate() throws {
        if fresh, expired { throw ValidationError("--fresh and --expired exclude each other") }
        if let limit, limit < 1 { throw ValidationError("--limit (-n) is at least 1") }
    }

    /// - Throws: for a variant that the cache does not know, as wrong usage.
    func selection(in catalog: CacheCatalog, at now: Timestamp) throws -> ListSelection {
        var selection = ListSelection()
        selection.hosts = hosts.names
        selection.formats = format
        selection.minimumBytes = minimumBytes?.size
        selection.maximumBytes = maximumBytes?.size
        selection.fetchedBefore = olderThan.map { now.advanced(by: .zero - $0.duration) }
        selection.fetchedAfter = newerThan.map { now.advanced(by: .zero - $0.duration) }
        if fresh || expired { selection.freshness.append(.init(fresh: fresh, at: now)) }
        if let expiresWithin {
            selection.freshness.append(
                .init(fresh: false, at: now, ahead: expiresWithin.duration))
        }
        selection.variant = try variant.map(catalog.selector(ofVariant:))
        selection.order = sort
        selection.isReversed = reverse
        selection.limit = limit
        return selection
    }
}
