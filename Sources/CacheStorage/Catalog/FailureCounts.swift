/// The numbers of rows in the table `failure`.
package struct FailureCounts: Hashable, Sendable {
    /// URLs with a failed last attempt.
    package internal(set) var failures = 0
    /// The part of ``failures`` that is blacklisted now.
    package internal(set) var blacklisted = 0
    /// Images that a rule of the user excludes, which do not count as failures.
    package internal(set) var exclusions = 0
}
