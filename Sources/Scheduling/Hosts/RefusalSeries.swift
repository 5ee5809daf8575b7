/// The refusals of a host for its pace (429, 503), as a series without a long time between two.
struct RefusalSeries: Sendable {
    /// The time of the last refusal, and the number of starts when the pace was reduced last; nil
    /// before the first refusal.
    var last: (starts: Int, time: Moment)?
    var answers = 0
    /// Whether a good response has followed the last refusal, repeated ones included.
    var hasAnswered = false
    /// Whether the host refuses requests whatever the pace.
    var areUnavoidable = false
    var formerLimit = 1
    /// The fastest refused pace of the series, in transfers or requests a second.
    var fastest = 0.0
    private var answersInSeries = 0
    private(set) var entriesInSeries = 0
    private(set) var entriesInARow = 0

    /// Entries refused in a row at a host that accepts nothing.
    static let entriesToClose = 3
    /// Unavoidable refusals in a row that may be due to the pace again.
    static let refusalsForPace = 5
    /// The good responses, and the time without a refusal, that end a series.
    private static let answersAfterSeries = 8
    private static let timeAfterSeries = Duration.seconds(4)
    /// A series with this many good responses and refusals that continues at this share of its
    /// fastest pace has another cause than the pace.
    private static let answersInVain = 5
    private static let responsesInVain = 14
    private static let shareInVain = 1.0 / 3

    mutating func noteAnswer() {
        answers += 1
        answersInSeries += 1
        hasAnswered = true
        entriesInARow = 0
    }

    mutating func noteEntry() {
        entriesInSeries += 1
        entriesInARow += 1
    }

    /// Returns whether a refusal at this pace shows that a much slower one has not helped. Begins a
    /// new series if the last one has ended.
    mutating func goesOnInVain(_ pace: Double, at now: Moment) -> Bool {
        guard let last,
            answers < RefusalSeries.answersAfterSeries
                || now < last.time + RefusalSeries.timeAfterSeries
        else {
            fastest = pace
            answersInSeries = 0
            entriesInSeries = 1
            return false
        }
        fastest = max(fastest, pace)
        return answersInSeries >= RefusalSeries.answersInVain
            && answersInSeries + entriesInSeries >= RefusalSeries.responsesInVain
            && pace <= fastest * RefusalSeries.shareInVain
    }
}
