import CacheStorage
import EntryLifecycle
import EntryQueue
import PrefetchModel
import Threading
import Transfers

/// Why a run cannot be completed.
struct FatalError: Error, Sendable {
    let message: String
    var hint: String?
    /// What the entries that it caught on their way are reported with.
    let reason: FailureReason
    /// Whether the disk is full.
    var isDiskFull = false
    /// Whether the database is damaged.
    var isDamage = false
}

extension FatalError {
    /// As the entries see it that it catches.
    var failure: Failure { Failure(reason, message) }

    init(_ error: StorageError) {
        self.init(
            message: error.description, hint: error.hint, reason: .disk,
            isDiskFull: error.isDiskFull, isDamage: error.isDamage)
    }

    init(_ error: TransferLoopError) {
        self.init(message: error.description, hint: error.hint, reason: .internal)
    }

    init(_ error: ThreadError) {
        self.init(message: error.description, hint: error.hint, reason: .internal)
    }

    /// What the queue's storage throws.
    init(spilling error: any Error) {
        if let error = error as? SpillError {
            self.init(message: error.description, hint: error.hint, reason: .disk)
        } else {
            self.init(message: "\(error)", hint: nil, reason: .internal)
        }
    }
}
