package import PrefetchModel

/// The past of an entry that has had a turn.
package struct History: Sendable {
    package enum Beginning: Hashable, BitwiseCopyable, Sendable {
        case noTurn
        /// `position`: the place of its first turn among the run's starts, from 1.
        case turn(position: Int)
    }

    package enum LastResult: Hashable, Sendable {
        case none
        /// `contentType` is nil for a response without the field.
        case response(status: Int, contentType: String?)
        /// `status` is nil before a head arrived, `curlCode` where libcurl reported none.
        case failure(status: Int?, curlCode: Int?)
    }

    package var beginning = Beginning.noTurn
    /// Attempts so far, each from the listed URL on.
    package var attempts = 0
    /// Attempts at earlier URLs of its line.
    package var attemptsAtOthers = 0
    /// Requests for the rest of a body without a response.
    package var unansweredRanges = 0
    /// Refusals of its host for the pace, which are no attempts.
    package var refusals = 0
    /// The failure of an earlier URL that may have been temporary; nil without one.
    package var temporary: EarlierFailure?
    package var stages = StageDurations()
    package var bytesReceived = 0
    package var lastResult = LastResult.none
    package var connection: ResponseConnection?
    /// Reports of caches on the last response's way; nil for none. Not kept in files.
    package var cacheStatus: CacheStatus?

    package struct EarlierFailure: Hashable, Sendable {
        package var failure: Failure
        package var alternative: Int
        package var lastResult: LastResult

        package init(failure: Failure, alternative: Int, lastResult: LastResult) {
            self.failure = failure
            self.alternative = alternative
            self.lastResult = lastResult
        }
    }

    package init() {}

    package var hadTurn: Bool { beginning != .noTurn }

    package var httpStatus: Int? {
        switch lastResult {
        case .none: nil
        case .response(let status, _): status
        case .failure(let status, _): status
        }
    }
}
