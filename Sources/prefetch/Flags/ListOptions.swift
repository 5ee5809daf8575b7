import ArgumentParser
import CacheStorage
import PrefetchModel
import Upkeep

/// Flags of `list` that filter and sort images.
struct ListOptions: ParsableArguments {
    @OptionGroup var hosts: HostFilter

    @Option(help: ArgumentHelp("Only images stored in this format: jpeg, png, webp, …"))
    var format: [ImageFormat] = []

    @Option(
        name: .customLong("min-bytes"),
        help: .value("size", "Only files of this size or larger."))
    var minimumBytes: ByteCount?

    @Option(
        name: .customLong("max-bytes"),
        help: .value("size", "Only files of this size or smaller."))
    var maximumBytes: ByteCount?

    @Option(help: .value("duration", "Only images downloaded longer ago than this."))
    var olderThan: Duration?

    @Option(help: .value("duration", "Only images downloaded within this time."))
    var newerThan: Duration?

    @Flag(help: "Only fresh images.")
    var fresh = false

    @Flag(help: "Only stale images.")
    var expired = false

    @Option(help: .value("duration", "Only images that are stale now or will be within this time."))
    var expiresWithin: Duration?

    @Option(
        help: .value(
            "name|recipe",
            """
            Only the variant with this name, and variants it superseded; or the variant with this \
            recipe, as in `list --json`.
            """), completion: .storedVariants)
    var variant: String?

    @OptionGroup var order: ListOrder

    func validate() throws {
        if fresh, expired { throw ValidationError("--fresh and --expired cannot be combined") }
    }

    func selection(in catalog: CacheCatalog, at now: Timestamp) throws -> ListSelection {
        var selection = ListSelection()
        selection.hosts = hosts.names
        selection.formats = format
        selection.minimumBytes = minimumBytes
        selection.maximumBytes = maximumBytes
        selection.fetchedBefore = olderThan.map { now.advanced(by: .zero - $0) }
        selection.fetchedAfter = newerThan.map { now.advanced(by: .zero - $0) }
        if fresh || expired { selection.freshness.append(.init(fresh: fresh, at: now)) }
        if let expiresWithin {
            selection.freshness.append(.init(fresh: false, at: now, ahead: expiresWithin))
        }
        selection.variant = try variant.map(catalog.selector(ofVariant:))
        selection.order = order.sort
        selection.isReversed = order.reverse
        selection.limit = order.limit
        return selection
    }
}

/// Flags of `list` about the order and the number of its lines.
struct ListOrder: ParsableArguments {
    @Option(
        help: """
            Sort by key, bytes (largest first), age (oldest first), expiry (earliest first) or host.
            """)
    var sort = ListSelection.Order.key

    @Flag(help: "Reverse the order.")
    var reverse = false

    @Option(
        name: [.customShort("n", allowingJoined: true), .customLong("limit")],
        help: .value("n", "Print only the first N images."))
    var limit: Int?

    func validate() throws {
        if let limit, limit < 1 { throw ValidationError("--limit (-n) must be at least 1") }
    }
}

/// The flag `--host` of commands that list or remove.
struct HostFilter: ParsableArguments {
    @Option(
        name: .customLong("host"),
        help: .value(
            "host",
            "Only this host: example.com (any port), example.com:8080 or https://example.com."),
        completion: .storedHosts)
    var names: [HostName] = []

    var isGiven: Bool { !names.isEmpty }

    /// Whether the filter includes an origin (scheme, host and port, as the cache stores it).
    func includes(origin: String) -> Bool {
        names.isEmpty || names.contains { $0.matches(origin: origin) }
    }
}

/// Flags of `failed list` and `failed clear`.
struct FailureFilter: ParsableArguments {
    @Option(help: "Only failures with this reason.")
    var reason: FailureReason?

    @Option(help: .value("status", "Only failures with this HTTP status, like 404; repeatable."))
    var status: [Int] = []

    @Option(
        help: .value(
            "duration|date",
            "Only URLs that failed since then: 12h, 2026-11-21 or 2026-11-21T05:37:16Z."))
    var since: SinceArgument?

    @OptionGroup var hosts: HostFilter

    var includesAll: Bool { reason == nil && status.isEmpty && since == nil && !hosts.isGiven }

    func validate() throws {
        if let wrong = status.first(where: { !(100...599).contains($0) }) {
            throw ValidationError("--status takes an HTTP status like 404, not \(wrong)")
        }
    }

    func includes(_ record: FailureRecord, at now: Timestamp) -> Bool {
        (reason == nil || record.reason == reason)
            && (status.isEmpty
                || record.reason == .httpStatus && record.httpStatus.map(status.contains) == true)
            && since.map { record.streak.lastFailedAt >= $0.moment(at: now) } != false
            && hosts.includes(origin: record.host)
    }
}
