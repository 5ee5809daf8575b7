/// The numbers of rows in the table `failure`.
package struct FailureCounts: Hashable, Sendable {
    /// URLs whose last attempt failed.
    package var failures: Int
    /// The part of ``failures`` that is blacklisted now.
    package var blacklisted: Int
    /// Images that a rule of the user excludes, which is no failure.
    package var exclusions: Int

    package init(failures: Int = 0, blacklisted: Int = 0, exclusions: Int = 0) {
        self.failures = failures
        self.blacklisted = blacklisted
        self.exclusions = exclusions
    }
}
