/// What a failure says about the next run. The raw values are texts that may be stored.
package enum FailureClass: String, CaseIterable, Hashable, Sendable {
    /// Asking again gives the same answer: the URL is blacklisted from the first failed run on
    /// (`uncacheable` from the second).
    case permanent
    /// Time may mend it: the URL is retried, in this run and in later ones, and blacklisted only after
    /// ``FailurePolicy/transientRunsToBlacklist`` runs in a row that failed so.
    case transient
    /// The cause lies on our side or with the user: neither blacklisted nor counted. Unless
    /// ``FailurePolicy/isKnown(of:httpStatus:)``, nothing is remembered, so what earlier runs found out about the URL stays
    /// as it is.
    case ours
}
