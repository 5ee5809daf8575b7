internal import PrefetchModel

/// The failures of a run, grouped by host, reason and HTTP status, and by whether earlier runs had
/// them. One dead host is one line of the summary, however many entries it has.
///
/// Memory is limited, since a list may have a million failing hosts: beyond ``mostGroups`` groups
/// or ``mostSampleBytes`` of samples, failures of further hosts are counted by reason alone.
struct FailureGroups: Sendable {
    static let mostGroups = 256
    static let mostSampleBytes = 1 << 20

    /// The properties that all entries of a group share.
    struct Cause: Hashable, Sendable {
        enum Place: Hashable, Sendable {
            /// Scheme, host and port.
            case host(String)
            /// All hosts beyond the limit of groups.
            case elsewhere
            /// No host; `problem` describes an invalid line.
            case here(problem: String)
        }

        var place: Place
        let reason: FailureReason
        var httpStatus: Int?
        var isKnown: Bool
    }

    struct CauseGroup: Sendable {
        var cause: Cause
        var count: Int
        /// The first entry by its position in the lists, so that a repeated run prints the same. It
        /// becomes text on demand: in a list read from its end, every failure replaces the sample.
        var sample: EntryResult
        var place: ListPosition
    }

    /// The manifest's number, in the order of the manifests' first failures, and the line.
    typealias ListPosition = (manifest: Int, line: Int)

    private var positions: [Cause: Int] = [:]
    private var manifests: [String: Int] = [:]
    private var groups: [CauseGroup] = []
    private var sampleBytes = 0

    mutating func note(_ result: EntryResult) {
        var cause = Cause(result)
        let place = place(of: result)
        if count(result, cause, place) { return }
        if groups.count >= FailureGroups.mostGroups
            || sampleBytes >= FailureGroups.mostSampleBytes
        {
            // At most one such group per reason.
            if case .host = cause.place {
                cause.place = .elsewhere
            } else {
                cause.place = .here(problem: "")
            }
            cause.httpStatus = nil
            if count(result, cause, place) { return }
        }
        sampleBytes += result.sampleBytes
        positions[cause] = groups.count
        groups.append(CauseGroup(cause: cause, count: 1, sample: result, place: place))
    }

    private mutating func place(of result: EntryResult) -> ListPosition {
        let next = manifests.count
        let manifest = manifests[result.manifest] ?? next
        if manifest == next { manifests[result.manifest] = next }
        return (manifest, result.line)
    }

    private mutating func count(_ result: EntryResult, _ cause: Cause, _ place: ListPosition)
        -> Bool
    {
        guard let position = positions[cause] else { return false }
        groups[position].count += 1
        if place < groups[position].place {
            sampleBytes += result.sampleBytes - groups[position].sample.sampleBytes
            groups[position].sample = result
            groups[position].place = place
        }
        return true
    }

    /// The HTTP status of all failures that an outage explains; nil if they have several or none.
    func commonStatus(of outage: Outage) -> Int? {
        let statuses = Set(
            groups.lazy.map(\.cause).filter { $0.isPart(of: outage) }.map(\.httpStatus))
        return statuses.count == 1 ? statuses.first.flatMap(\.self) : nil
    }

    /// The groups that `isWanted` accepts: new failures first, then the largest group.
    ///
    /// Groups that an outage explains have one cause; they are merged and are the first group.
    /// `isNews` tells whether known failures are new after all.
    func ordered(
        outage: Outage?, isNews: (Cause) -> Bool = { _ in false }, where isWanted: (Cause) -> Bool
    ) -> [CauseGroup] {
        var explained: CauseGroup?
        var others: [CauseGroup] = []
        for var group in groups {
            if isNews(group.cause) { group.cause.isKnown = false }
            guard isWanted(group.cause) else { continue }
            if let outage, group.cause.isPart(of: outage) {
                explained = explained.map { $0.joined(with: group) } ?? group
            } else {
                others.append(group)
            }
        }
        others.sort { first, second in
            guard first.cause.isKnown == second.cause.isKnown else { return second.cause.isKnown }
            return first.count == second.count
                ? first.place < second.place : first.count > second.count
        }
        return (explained.map { [$0] } ?? []) + others
    }
}

extension FailureGroups.Cause {
    fileprivate init(_ result: EntryResult) {
        reason = result.reason ?? .internal
        httpStatus = result.httpStatus
        isKnown = result.isKnown
        switch reason {
        case .invalidEntry, .unsupportedScheme:
            place = .here(problem: result.ownMessage ?? "")
        case .disk, .internal:
            place = .here(problem: "")
            httpStatus = nil
        default:
            place = .host(RequestURL(normalized: result.url).origin)
            if reason != .httpStatus { httpStatus = nil }
        }
    }

    /// Whether an outage explains the failure; without host names, by the reason alone.
    fileprivate func isPart(of outage: Outage) -> Bool {
        guard case .host(let host) = place, outage.includes(reason, httpStatus: httpStatus) else {
            return false
        }
        return outage.hosts.isEmpty || outage.hosts.contains(host)
    }
}

extension FailureGroups.Cause {
    /// Whether the end of the run found that failures are new, which ended as known.
    func isNews(in summary: RunSummary) -> Bool {
        if let outage = summary.outage, !summary.isOutageKnown, isPart(of: outage) { return true }
        guard case .host(let host) = place else { return false }
        return summary.hostsWithNews.contains(host)
    }
}

extension EntryResult {
    /// `m.txt:12: URL`, printable and redacted.
    var shownEntry: String { printable("\(manifest):\(line): \(shownURL)") }

    var shownMessage: String? { ownMessage.map { printable(redacted($0)) } }

    /// The message without the position in front of it.
    fileprivate var ownMessage: String? {
        let place = "\(manifest):\(line): "
        return message.map { $0.hasPrefix(place) ? String($0.dropFirst(place.count)) : $0 }
    }

    fileprivate var sampleBytes: Int {
        manifest.utf8.count + url.utf8.count + key.utf8.count + (message?.utf8.count ?? 0)
    }
}

extension FailureGroups.CauseGroup {
    /// Merges both groups; the sample is a new failure if there is one.
    fileprivate func joined(with other: FailureGroups.CauseGroup) -> FailureGroups.CauseGroup {
        let isFirst =
            cause.isKnown == other.cause.isKnown ? place < other.place : other.cause.isKnown
        let shown = isFirst ? self : other
        var cause = shown.cause
        if cause.place != other.cause.place || cause.place != self.cause.place {
            cause.place = .here(problem: "")
        }
        if self.cause.httpStatus != other.cause.httpStatus { cause.httpStatus = nil }
        return FailureGroups.CauseGroup(
            cause: cause, count: count + other.count, sample: shown.sample, place: shown.place)
    }

    /// A line of the summary, without indentation:
    /// `m.txt:7: URL: dns: Could not resolve host` for one entry, and for more
    /// `9 at https://example.org: http-status, first m.txt:1: URL: HTTP 404`.
    var line: String {
        let message = sample.shownMessage.map { ": \($0)" } ?? ""
        let reason = cause.reason.rawValue + (cause.isKnown ? " (known)" : "")
        guard count > 1 else { return "\(sample.shownEntry): \(reason)\(message)" }
        let place =
            switch cause.place {
            case .host(let host): " at \(printable(RedactedURL(host).description))"
            case .elsewhere: " at other hosts"
            case .here: " entries"
            }
        return "\(count)\(place): \(reason), first \(sample.shownEntry)\(message)"
    }
}
