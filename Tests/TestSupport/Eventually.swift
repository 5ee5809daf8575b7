import Foundation

package struct NeverHappened: Error, CustomStringConvertible {
    package let description: String
}

/// Polls every 5 ms until `condition` holds, for conditions without notification.
///
/// - Throws: ``NeverHappened`` if it does not hold within `limit`, or the error of `condition`.
package func eventually(
    _ description: String, within limit: Duration = .seconds(60),
    isolation: isolated (any Actor)? = #isolation, _ condition: () async throws -> Bool
) async throws {
    let deadline = ContinuousClock.now + limit
    while try await !condition() {
        guard ContinuousClock.now < deadline else {
            throw NeverHappened(description: "waited in vain: \(description)")
        }
        try await Task.sleep(for: .milliseconds(5))
    }
}

/// Runs work that blocks on a thread of its own.
package func blocking<Success: Sendable>(
    _ work: @escaping @Sendable () throws -> Success
) async throws -> Success {
    try await withCheckedThrowingContinuation { continuation in
        let thread = Thread { continuation.resume(with: Result(catching: work)) }
        thread.start()
    }
}
