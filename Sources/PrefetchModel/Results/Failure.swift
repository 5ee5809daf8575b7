/// A reason for failing, and one line for the user.
package struct Failure: Error, Hashable, Sendable {
    package let reason: FailureReason
    package let message: String

    package init(_ reason: FailureReason, _ message: String) {
        self.reason = reason
        self.message = message
    }
}
