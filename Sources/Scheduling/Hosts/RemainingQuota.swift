/// The starts that a host's rate-limit fields still allow.
struct RemainingQuota: Sendable {
    var starts: Int
    /// The most that the host has allowed.
    let whole: Int
    /// The time at which the host allows all of them again.
    var until: Moment

    /// The end of a new quota, until an answer states it.
    private static let unknownTime = Duration.seconds(1)

    init(starts: Int, whole: Int, until: Moment) {
        self.starts = starts
        self.whole = whole
        self.until = until
    }

    /// The end of the pause; nil while something is left.
    var pauseEnd: Moment? { starts <= 0 ? until : nil }

    mutating func started(at now: Moment) {
        if until <= now {
            starts = whole
            until = now + RemainingQuota.unknownTime
        }
        starts -= 1
    }
}
