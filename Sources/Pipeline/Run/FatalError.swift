import CacheStorage
import EntryQueue
import PrefetchModel
import Threading
import Transfers

/// The reason that a run cannot be completed.
struct FatalError: Error, Sendable {
    let message: String
    var hint: String?
    /// The reason reported for unfinished entries.
    let reason: FailureReason
    /// Whether the disk is full.
    var isDiskFull = false
    /// Whether the database is damaged.
    var isDamage = false
}

extension FatalError {
    /// The failure of the entries that it ends.
    var failure: Failure { Failure(reason, message) }

    init(_ error: StorageError) {
        self.init(
            message: error.description, hint: error.hint, reason: .disk,
            isDiskFull: error.isDiskFull, isDamage: error.isDamage)
    }

    init(_ error: UserError) {
        self.init(message: error.description, hint: error.hint, reason: .internal)
    }

    /// Converts an error of the queue's storage.
    init(spilling error: any Error) {
        if let error = error as? SpillError {
            self.init(message: error.description, hint: error.hint, reason: .disk)
        } else {
            self.init(message: "\(error)", hint: nil, reason: .internal)
        }
    }
}
