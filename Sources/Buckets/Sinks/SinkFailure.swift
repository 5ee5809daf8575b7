import CacheStorage
package import PrefetchModel

/// The reason why a sink could not be written or read.
package struct SinkFailure: Error {
    package let message: String
    package let hint: String?
    /// Whether the work was stopped.
    package let isStop: Bool
    /// Whether one object or database is to blame, and others may be fine.
    let isOfOne: Bool

    init(_ message: String, hint: String? = nil, isStop: Bool = false, isOfOne: Bool = false) {
        self.message = message
        self.hint = hint
        self.isStop = isStop
        self.isOfOne = isOfOne
    }

    /// Calls `body`, which sends requests.
    static func ofRequests<Result>(
        _ body: () throws(ObjectStorageError) -> Result
    ) throws(SinkFailure) -> Result {
        do throws(ObjectStorageError) {
            return try body()
        } catch {
            let (isStop, isOfOne) =
                switch error.kind {
                case .cancelled: (true, false)
                case .missing, .damaged: (false, true)
                case .other: (false, false)
                }
            throw SinkFailure(
                error.description, hint: error.hint, isStop: isStop, isOfOne: isOfOne)
        }
    }

    /// Calls `body`, which reads or writes a cache.
    static func ofCache<Result>(
        _ body: () throws(StorageError) -> Result
    ) throws(SinkFailure) -> Result {
        do throws(StorageError) {
            return try body()
        } catch {
            throw SinkFailure(error.description, hint: error.hint)
        }
    }
}

extension SinkFailure: ReportableError {
    package var userError: UserError { UserError(message, hint: hint) }
}
