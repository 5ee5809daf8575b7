/// The limit of one host's simultaneous transfers: raised by one after a full round of good
/// responses, halved by an overload response (additive increase, multiplicative decrease).
struct AdaptiveConcurrency: Sendable {
    /// At least 1.
    var limit: Int
    /// Good responses since the limit last changed.
    var answersInRound = 0
    /// The number of starts at the last halving.
    private var startsAtHalving = 0

    init(limit: Int) {
        self.limit = limit
    }

    /// Counts a good response.
    mutating func raise(to maximum: Int) {
        guard limit < maximum else { return }
        answersInRound += 1
        guard answersInRound >= limit else { return }
        answersInRound = 0
        limit += 1
    }

    /// Counts an overload response to the host's `start`-th transfer, after `starts` of them.
    mutating func halve(start: Int, of starts: Int) {
        answersInRound = 0
        // All transfers under way at the first overload response report the same overload.
        guard start > startsAtHalving, limit > 1 else { return }
        startsAtHalving = starts
        limit /= 2
    }
}
