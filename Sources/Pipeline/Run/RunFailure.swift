import CacheStorage
import PrefetchModel

/// The reason that a run cannot be completed.
struct RunFailure: Sendable {
    var error: UserError
    let reason: FailureReason
    let isDiskFull: Bool
    let isDamage: Bool

    init(_ error: any Error) {
        let storage = error as? StorageError
        reason = storage == nil ? .internal : .disk
        isDiskFull = storage?.isDiskFull ?? false
        isDamage = storage?.isDamage ?? false
        self.error = UserError(reporting: error)
    }

    var failure: Failure { Failure(reason, error.description) }
}
