/// The failed images of a host in a run, by cause.
package struct HostFailures: Hashable, Sendable {
    package struct Cause: Hashable, Sendable {
        package let reason: FailureReason
        /// Nil unless the reason is ``FailureReason/httpStatus``.
        package let httpStatus: Int?

        package init(_ reason: FailureReason, httpStatus: Int?) {
            self.reason = reason
            self.httpStatus = reason == .httpStatus ? httpStatus : nil
        }
    }

    package private(set) var count = 0
    private var causes: [Cause: Int] = [:]

    /// Further causes are counted in ``count`` only, since a host may invent statuses.
    private static let mostCauses = 8

    package init() {}

    package mutating func note(_ cause: Cause) {
        count += 1
        guard causes[cause] != nil || causes.count < HostFailures.mostCauses else { return }
        causes[cause, default: 0] += 1
    }

    /// The failures with 429 or 503.
    package var refused: Int {
        causes.reduce(0) { $0 + ([429, 503].contains($1.key.httpStatus) ? $1.value : 0) }
    }

    /// The cause of more than half of the failures, if any.
    package var main: (cause: Cause, count: Int)? {
        causes.first { $0.value * 2 > count }.map { ($0.key, $0.value) }
    }
}
