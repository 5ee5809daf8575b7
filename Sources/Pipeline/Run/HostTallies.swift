import PrefetchModel
import Scheduling
import Transfers

struct HostTallies {
    typealias Instant = ContinuousClock.Instant

    struct HostTally {
        /// The counts of the host.
        var pace: HostPace
        let firstStart: Instant
        var lastEnd: Instant
        /// Over reused connections: their transfers do not begin with a handshake.
        var waiting = Duration.zero
        var receiving = Duration.zero
        var times = DurationHistogram()

        var perSecond: Double {
            let seconds = (lastEnd - firstStart).secondsValue
            return seconds > 0 ? Double(pace.responses) / seconds : 0
        }
        var waitsForBodies: Bool { receiving > waiting * 2 }
        var transferTimes: HostPace.TransferTimes? {
            guard let median = times.quantile(0.5), let high = times.quantile(0.95) else {
                return nil
            }
            return HostPace.TransferTimes(median: median, percentile95: high)
        }
        /// A host that was given up has more failures than requests.
        fileprivate var weight: Int { max(pace.requests, pace.failures.count) }
    }

    private var tallies: [String: HostTally] = [:]
    /// Turns at which a transfer could start, and turns at which the codecs or the writer had no
    /// room for its image.
    private var turns = 0
    private var turnsWithoutRoom = 0
    /// The responses of the host that was looked up last, and the time of the look-up.
    private var snapshot: (host: String, responses: Int, time: Instant)?
    private var recent = 0.0

    /// Beyond this number, the smaller half is forgotten.
    private static let maximum = 2048
    private static let shownHosts = 10
    private static let shortestTime = Duration.seconds(1)

    mutating func note(_ completion: TransferCompletion, of host: String, at now: Instant) {
        guard let connection = completion.connection else { return }
        update(host, since: now - completion.elapsed) { tally in
            tally.pace.responses += 1
            if case .response(let response, _) = completion.result {
                tally.times.note(completion.elapsed)
                if Response.isRefusalForPace(response.status) { tally.pace.refusals += 1 }
            }
            tally.pace.version = connection.version
            tally.lastEnd = now
            guard connection.isReused else { return }
            tally.waiting += connection.timeToFirstByte
            tally.receiving += completion.elapsed - connection.timeToFirstByte
        }
    }

    mutating func noteRequest(to host: String, at now: Instant) {
        update(host, since: now) { $0.pace.requests += 1 }
    }

    /// Counts an image that could not be had from a host, with or without a response.
    mutating func noteFailure(
        _ reason: FailureReason, httpStatus: Int?, at host: String, at now: Instant
    ) {
        guard !reason.isLocal else { return }
        update(host, since: now) {
            $0.pace.failures.note(HostFailures.Cause(reason, httpStatus: httpStatus))
        }
    }

    private mutating func update(
        _ host: String, since start: Instant, _ change: (inout HostTally) -> Void
    ) {
        if tallies.count >= HostTallies.maximum, tallies[host] == nil { forgetSmall() }
        change(
            &tallies[
                host,
                default: HostTally(pace: HostPace(host: host), firstStart: start, lastEnd: start)])
    }

    mutating func noteTurn(hasRoomForImage: Bool) {
        turns += 1
        if !hasRoomForImage { turnsWithoutRoom += 1 }
    }

    /// Whether transfers waited for the codecs or the writer at most of their turns.
    var waitsForCodecs: Bool { turnsWithoutRoom * 2 > turns }

    private mutating func forgetSmall() {
        let kept = tallies.sorted { $0.value.weight > $1.value.weight }
            .prefix(HostTallies.maximum / 2)
        tallies = Dictionary(uniqueKeysWithValues: kept.map { ($0.key, $0.value) })
    }

    var largest: some Collection<HostTally> {
        tallies.values.sorted { ($1.weight, $0.pace.host) < ($0.weight, $1.pace.host) }
            .prefix(HostTallies.shownHosts)
    }

    /// Returns the responses of a host a second since about a second ago; nil when unknown.
    mutating func recentRate(of host: String, at now: Instant) -> Double? {
        guard let responses = tallies[host]?.pace.responses else { return nil }
        guard let former = snapshot, former.host == host else {
            snapshot = (host, responses, now)
            recent = 0
            return nil
        }
        let time = now - former.time
        if time >= HostTallies.shortestTime {
            recent = Double(responses - former.responses) / time.secondsValue
            snapshot = (host, responses, now)
        }
        return recent > 0 ? recent : nil
    }
}
