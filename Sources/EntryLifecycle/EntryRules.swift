package import HTTPSemantics
package import PrefetchModel
package import Scheduling

/// What a run asks of all its entries, as far as their way depends on it.
package struct EntryRules: Sendable {
    package var maximumRedirects = 10
    /// Whether redirects from https to http are followed.
    package var allowsDowngrade = false
    /// Whether nothing is asked for.
    package var isOffline = false
    /// Whether validators, parts of bodies and digests of what is stored are used; else everything is
    /// fetched, decoded and stored anew.
    package var usesWhatIsStored = true
    /// Whether the targets of permanent redirects are used that earlier runs were told.
    package var followsMemory = true
    /// A part of a body is of use below this size.
    package var maximumBodyBytes = 64 << 20
    /// A smaller body is not worth keeping when it breaks off.
    package var smallestPartBytes = 1 << 20
    /// The lifetimes of an entry with these fields.
    package var freshness: @Sendable (EntryExtras?) -> Freshness.Rules
    /// All fields of a request, of which some are the user's for this entry, and which may be for
    /// another origin than the listed one.
    package var requestFields:
        @Sendable (_ userFields: [HeaderField], _ isForeign: Bool) -> [HeaderField]

    package init(
        freshness: @escaping @Sendable (EntryExtras?) -> Freshness.Rules = { extras in
            Freshness.Rules(forced: extras?.timeToLive)
        },
        requestFields: @escaping @Sendable ([HeaderField], Bool) -> [HeaderField] = { fields, _ in
            fields
        }
    ) {
        self.freshness = freshness
        self.requestFields = requestFields
    }
}

/// How far a run has got.
package enum RunPhase: Hashable, Sendable, CaseIterable {
    case running
    /// By a signal: nothing more starts, what runs is finished.
    case stopping
    /// What runs is not waited for any more.
    case cancelling
    /// It cannot be completed: nothing more is stored.
    case failed

    package var isStopping: Bool { self != .running }
    /// Whether bodies that have arrived are still decoded.
    var decodes: Bool { self == .running || self == .stopping }
    /// Whether what is known anew of a stored copy is still written.
    var writes: Bool { self != .failed }
}

/// What an event is judged by.
package struct EntryContext {
    package let rules: EntryRules
    package let phase: RunPhase
    /// Whether a failed attempt is followed by another one; asked once for each, and a retry is
    /// counted.
    package let retry: (FailureReason, _ httpStatus: Int?, _ attempts: Int) -> RetryPolicy.Decision

    package init(
        rules: EntryRules, phase: RunPhase,
        retry: @escaping (FailureReason, Int?, Int) -> RetryPolicy.Decision
    ) {
        self.rules = rules
        self.phase = phase
        self.retry = retry
    }
}
