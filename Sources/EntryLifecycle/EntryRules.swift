package import HTTPSemantics
package import PrefetchModel
package import Scheduling

package struct EntryRules: Sendable {
    package var redirects = RedirectRules()
    package var isOffline = false
    /// Whether stored validators, parts and digests are used. If not, every entry is fetched,
    /// decoded and stored again.
    package var usesStoredCopies = true
    /// A part of a body is resumed only below this size.
    package var maximumBodyBytes = 64 << 20
    /// A smaller part is not worth storing when its transfer breaks off.
    package var smallestPartBytes = 1 << 20
    /// The parameters of queries in which URLs of one key may differ.
    package var ignoredQuery = IgnoredQuery.none
    /// Whether images are stored. If not, a whole response ends an entry.
    package var storesImages = true
    package var responses = ResponseRules()
    package var responsesByHost = HostTable<ResponseRules>()
    package var exclusions = ExclusionRules()
    package var freshness: @Sendable (EntryExtras?) -> Freshness.Rules = {
        Freshness.Rules(forced: $0?.timeToLive)
    }
    /// All fields of a request to a URL, given the user's fields for the entry, and whether the
    /// request is for another origin than the listed one.
    package var requestFields:
        @Sendable (_ url: RequestURL, _ userFields: [HeaderField], _ isForeign: Bool)
            -> [HeaderField] = { _, fields, _ in fields }

    package init() {}

    /// Whether a request for a listed URL begins at the target of an earlier run's permanent
    /// redirects. Returns the end of their freshness; nil if not.
    package func redirectsRemembered(
        in copy: ResourceValidation, from url: RequestURL, to target: RequestURL, at now: Timestamp
    ) -> Timestamp? {
        guard redirects.followsMemory, redirects.maximum > 0,
            copy.location.url == url.withoutCredentials.text,
            let until = copy.location.permanent?.until,
            Freshness.isFresh(
                validatedAt: copy.validatedAt, expiresAt: until, at: now,
                rules: Freshness.redirectRules),
            target != url.withoutCredentials, redirects.mayLead(from: url, to: target)
        else { return nil }
        return until
    }

    func responses(of url: RequestURL) -> ResponseRules {
        responsesByHost[hostIn: url.text] ?? responses
    }
}

extension Failure {
    /// The objection to a redirect's target, with the target.
    package func redirected(to target: String) -> Failure {
        Failure(reason, "\(message): redirected to \(target)")
    }
}

/// The rules that exclude an entry by a response.
package struct ExclusionRules: Sendable {
    package var robots = RobotsDirectives.none
    /// Returns why the user's patterns exclude the target of a redirect; nil if they do not.
    package var objection: @Sendable (Redirect) -> Failure? = { _ in nil }
}

package enum RunPhase: Hashable, Sendable, CaseIterable {
    case running
    /// After a signal: nothing more starts, and running entries are finished.
    case stopping
    case cancelling
    /// The run cannot be completed: nothing more is stored.
    case failed

    package var isStopping: Bool { self != .running }
    var decodes: Bool { self == .running || self == .stopping }
    /// Whether news of a stored copy are still written.
    var writes: Bool { self != .failed }
}

/// The rules and state that an event is judged by.
package struct EntryContext {
    package let rules: EntryRules
    package let phase: RunPhase
    /// The variants of all lines so far of the entry's key. Variants are only ever appended. Nil if
    /// they cannot be read back, which ends the run. They may be in a file, so only events that
    /// need them read them.
    package var variants: VariantSet? { readVariants() }
    private let readVariants: () -> VariantSet?
    /// By the wall clock.
    package let now: Timestamp
    package typealias Retrying = (
        _ host: RequestURL, FailureReason, _ httpStatus: Int?, _ attempts: Int
    ) -> RetryPolicy.RetryDecision
    /// Decides whether a failed attempt is retried. Called once for each failed attempt, since a
    /// retry is counted.
    package let retry: Retrying

    package init(
        rules: EntryRules, phase: RunPhase, variants: @escaping @autoclosure () -> VariantSet?,
        now: Timestamp, retry: @escaping Retrying
    ) {
        self.rules = rules
        self.phase = phase
        readVariants = variants
        self.now = now
        self.retry = retry
    }
}
