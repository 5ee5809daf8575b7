import PrefetchModel

/// The limit of requests a second, for a host that has refused some for their pace.
///
/// A value without clock. It starts at four fifths of the rate at which the host responded well
/// over the last seconds. From there it grows by a twentieth of that rate a second, and more slowly
/// close to it, because the host is known to refuse about there. Beyond it the rate was
/// underestimated, and the limit grows by a fifth a second. The next refusal starts again, and
/// several in a row without any good response halve the limit.
struct RequestRate: Sendable {
    /// Requests a second; nil for no limit.
    private(set) var limit: Double?
    /// The rate of good responses when the host last refused.
    private(set) var refused = 0.0
    private var grownAt: Moment?
    private var answersSinceRefusal = 0
    private var recent = Window()

    /// Good responses of the last seconds, in two parts, so that old ones are forgotten.
    private struct Window {
        var start: Moment?
        var count = 0
        var former = 0
        var formerSeconds = 0.0

        /// A part has at least a second and ten responses, or half a minute.
        private static let leastSeconds = 1.0
        private static let fewAnswers = 10
        private static let mostSeconds = 30.0

        mutating func begin(at now: Moment) {
            if start == nil { start = now }
        }

        mutating func add(at now: Moment) {
            begin(at: now)
            // A pause says nothing about the rate.
            if seconds(at: now) > Window.mostSeconds * 2 { self = Window(start: now) }
            let seconds = self.seconds(at: now)
            if seconds >= Window.mostSeconds
                || seconds >= Window.leastSeconds && count >= Window.fewAnswers
            {
                (former, formerSeconds) = (count, seconds)
                (start, count) = (now, 0)
            }
            count += 1
        }

        private func seconds(at now: Moment) -> Double { start.map { now.seconds(since: $0) } ?? 0 }

        func rate(at now: Moment) -> Double {
            Double(former + count) / max(Window.leastSeconds, formerSeconds + seconds(at: now))
        }
    }

    private static let startShare = 0.8
    private static let nearShare = 0.9
    private static let rememberedShare = 0.95
    /// The growth a second, as a share of the refused rate.
    private static let growth = 0.05
    private static let growthNear = 0.02
    /// The growth a second above the refused rate, as a share of the limit.
    private static let growthBeyond = 0.2
    private static let least = 1 / HostPace.longestInterval.secondsValue

    init() {}

    /// Continues from the ``remembered`` limit of an earlier run.
    init(remembered: Double) {
        let limit = max(remembered, RequestRate.least)
        self.limit = limit
        refused = limit / RequestRate.rememberedShare
    }

    /// The limit for the next run: a little below the rate that was refused.
    var remembered: Double? {
        guard let limit, refused > 0 else { return nil }
        return max(RequestRate.least, min(limit, refused * RequestRate.rememberedShare))
    }

    var interval: Duration? { limit.map { .seconds(1 / $0) } }

    private(set) var hasAnswers = false

    mutating func started(at now: Moment) { recent.begin(at: now) }

    mutating func answered(at now: Moment) {
        hasAnswers = true
        recent.add(at: now)
        answersSinceRefusal += 1
        guard let limit else { return }
        // A pause is no growth.
        let seconds = min(grownAt.map { now.seconds(since: $0) } ?? 0, 2 / limit)
        grownAt = now
        let growth =
            switch limit {
            case _ where refused == 0: limit
            case ..<(refused * RequestRate.nearShare): RequestRate.growth * refused
            case ..<refused: RequestRate.growthNear * refused
            default: RequestRate.growthBeyond * limit
            }
        self.limit = limit + growth * max(0, seconds)
        // The host accepts more than it did.
        if limit > refused { refused = max(refused, min(limit, recent.rate(at: now))) }
    }

    /// Takes a refusal for the pace; `isClosed` if several in a row suggest that the host accepts
    /// nothing now.
    mutating func refused(at now: Moment, isClosed: Bool) {
        let rate = recent.rate(at: now)
        if let limit, answersSinceRefusal == 0 {
            guard isClosed else { return }
            self.limit = max(limit / 2, RequestRate.least)
            if refused > 0 { refused = max(min(refused, rate), limit) }
        } else {
            // Before any response nothing is known.
            refused = rate
            let start = RequestRate.startShare * (rate > 0 ? rate : 1)
            limit = max(min(limit ?? .infinity, start), RequestRate.least)
        }
        answersSinceRefusal = 0
        grownAt = now
    }

    /// Forgets the limit, which had no effect on the refusals.
    mutating func forget() {
        self = RequestRate()
        hasAnswers = true
    }
}
