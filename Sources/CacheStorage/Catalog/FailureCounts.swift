/// The numbers of rows in the table `failure`.
package struct FailureCounts: Hashable, Sendable {
    /// URLs with a failed last attempt.
    package var failures: Int
    /// The part of ``failures`` that is blacklisted now.
    package var blacklisted: Int
    /// Images that a rule of the user excludes, which do not count as failures.
    package var exclusions: Int

    package init(failures: Int = 0, blacklisted: Int = 0, exclusions: Int = 0) {
        self.failures = failures
        self.blacklisted = blacklisted
        self.exclusions = exclusions
    }
}
