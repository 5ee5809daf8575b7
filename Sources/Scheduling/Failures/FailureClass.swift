/// The consequence of a failure for later runs. The raw values are stored.
package enum FailureClass: String, CaseIterable, Hashable, Sendable {
    /// Another request gives the same answer: the URL is blacklisted from the first failed run on
    /// (`uncacheable` from the second).
    case permanent
    /// The failure may be temporary: the URL is retried in this run and in later ones. It is
    /// blacklisted after ``FailurePolicy/transientRunsToBlacklist`` failed runs in a row.
    case transient
    /// The cause is local or lies with the user: neither blacklisted nor counted. Unless
    /// ``FailurePolicy/isKnown(of:httpStatus:)``, nothing is stored, and the URL's row stays as it
    /// is.
    case ours
}
