import PrefetchModel
import Scheduling
import Testing

@Suite(.timeLimit(.minutes(15)))
struct FailurePolicyTests {
    // MARK: The table

    /// The names in the report, so that the table reads as the user knows it.
    private static let expectedByReason: [String: FailureClass] = [
        "unsupported-scheme": .permanent, "redirect": .permanent, "too-large": .permanent,
        "not-an-image": .permanent, "corrupt-image": .permanent, "too-many-pixels": .permanent,
        "unsupported-image": .permanent, "uncacheable": .permanent, "other-format": .permanent,
        "min-size": .permanent, "max-aspect": .permanent, "min-bytes": .permanent,
        "robots": .permanent, "not-selected": .ours,
        "dns": .transient, "connect": .transient, "tls": .transient, "timeout": .transient,
        "stalled": .transient, "interrupted": .transient,
        "body-filter": .ours, "invalid-entry": .ours, "refused-address": .ours, "disk": .ours,
        "internal": .ours,
    ]

    private static let statuses: [Int?] =
        [nil, .min, -1, 0, 99, 600, 999, .max] + Array(100...599)

    private static func expected(ofStatus status: Int?) -> FailureClass {
        guard let status else { return .ours }
        if [401, 403, 407].contains(status) { return .ours }
        if [408, 421, 425, 429].contains(status) { return .transient }
        return status / 100 == 4 ? .permanent : .transient
    }

    @Test(arguments: FailureReason.allCases)
    func classifiesEveryReasonWithEveryStatus(reason: FailureReason) throws {
        var different: [Int?] = []
        for status in FailurePolicyTests.statuses {
            let expected =
                reason == .httpStatus
                ? FailurePolicyTests.expected(ofStatus: status)
                : try #require(FailurePolicyTests.expectedByReason[reason.rawValue])
            if FailurePolicy.failureClass(of: reason, httpStatus: status) != expected {
                different.append(status)
            }
        }
        #expect(different.isEmpty)
    }

    @Test(arguments: [
        (400, FailureClass.permanent), (404, .permanent), (405, .permanent), (410, .permanent),
        (414, .permanent), (418, .permanent), (451, .permanent), (499, .permanent),
        (500, .transient), (501, .transient), (503, .transient), (511, .transient),
        (599, .transient), (101, .transient), (202, .transient), (204, .transient),
        (206, .transient), (300, .transient), (304, .transient), (305, .transient),
    ])
    func classifiesStatusesByTheirRow(status: Int, expected: FailureClass) {
        #expect(FailurePolicy.failureClass(of: .httpStatus, httpStatus: status) == expected)
    }

    // MARK: Blocks

    @Test(arguments: [
        (Int.min, nil), (-1, nil), (0, nil), (1, 1), (2, 6), (3, 24), (4, 7 * 24), (5, 30 * 24),
        (6, 30 * 24), (100, 30 * 24), (Int.max, 30 * 24),
    ])
    func blacklistsLongerWithEachConfirmation(confirmations: Int, hours: Int?) {
        #expect(
            FailurePolicy.blacklistDuration(confirmations: confirmations)
                == hours.map { .seconds($0 * 3600) })
    }

    @Test(arguments: [
        (FailureClass.permanent, Int.min, 0), (.permanent, 0, 0), (.permanent, 1, 1),
        (.permanent, 7, 7), (.permanent, .max, .max),
        (.transient, .min, 0), (.transient, 0, 0), (.transient, 1, 0), (.transient, 4, 0),
        (.transient, 5, 1), (.transient, 6, 2), (.transient, .max, .max - 4),
        (.ours, 0, 0), (.ours, 1, 0), (.ours, .max, 0),
    ])
    func countsConfirmationsByClass(failureClass: FailureClass, runs: Int, expected: Int) {
        for reason in FailureReason.allCases where reason != .uncacheable {
            let confirmations = FailurePolicy.confirmations(
                failureClass, reason: reason, runsInARow: runs)
            #expect(confirmations == expected, "\(reason)")
        }
    }

    @Test(arguments: [(0, 0), (1, 0), (2, 1), (3, 2), (Int.min, 0), (.max, .max - 1)])
    func noStoreIsBlacklistedFromTheSecondRun(runs: Int, expected: Int) {
        let confirmations = FailurePolicy.confirmations(
            .permanent, reason: .uncacheable, runsInARow: runs)
        #expect(confirmations == expected)
    }

    @Test(
        arguments: [
            (nil, FailureClass.permanent, 1), (nil, .transient, 1), (nil, .ours, 0),
            (1, .permanent, 2), (9, .permanent, 10), (.max, .permanent, .max),
            (0, .permanent, 1), (-5, .permanent, 1), (.min, .permanent, 1),
            (9, .transient, 1), (9, .ours, 0),
        ] as [(Int?, FailureClass, Int)])
    func countsRunsAfterPermanentOnes(runs: Int?, now: FailureClass, expected: Int) {
        let previous = runs.map { (class: FailureClass.permanent, runs: $0) }
        #expect(FailurePolicy.nextRunsInARow(previous: previous, now: now) == expected)
    }

    @Test(arguments: FailureClass.allCases, FailureClass.allCases)
    func countsOnlyRunsOfTheSameClass(previous: FailureClass, now: FailureClass) {
        let expected = now == .ours ? 0 : previous == now ? 4 : 1
        #expect(FailurePolicy.nextRunsInARow(previous: (previous, 3), now: now) == expected)
    }

    private static let day = 24 * 60 * 60_000
    private static let minute = 60_000

    /// Milliseconds from now; nil for no entry of the blacklist.
    @Test(
        arguments: [
            (nil, 0, false),
            // The entry has ended at its very end.
            (-1, -60_000, false), (0, -60_000, false), (1, -60_000, true),
            // The clock was up to 65 minutes fast when the row was written, or more.
            (66 * minute, 65 * minute, true), (66 * minute, 65 * minute + 1, false),
            (10 * day, 9 * day, false),
            // At most 30 days from now.
            (30 * day, 0, true), (30 * day + 1, 0, false), (30 * day, -10 * day, true),
            (30 * day + 1, -10 * day, false), (3650 * day, -1, false),
            // An entry of full length from a clock that was an hour fast still holds.
            (30 * day + 60 * minute, 60 * minute, true),
            (30 * day + 60 * minute + 1, 60 * minute, false),
            (30 * day + 66 * minute, 66 * minute, false),
        ] as [(Int?, Int, Bool)])
    func acceptsPlausibleTimes(until: Int?, failed: Int, isBlacklisted: Bool) {
        let now = Timestamp(seconds: 1_795_000_000)
        func instant(_ offset: Int) -> Timestamp { now.advanced(by: .milliseconds(offset)) }
        #expect(
            FailurePolicy.isBlacklisted(
                blacklistedUntil: until.map(instant), lastFailedAt: instant(failed), at: now)
                == isBlacklisted)
    }

    @Test(arguments: [
        (Timestamp.distantFuture, Timestamp(seconds: 0), Timestamp(seconds: 0)),
        (.distantFuture, .distantFuture, Timestamp(seconds: 0)),
        (.distantFuture, .distantPast, .distantPast),
        (.distantPast, .distantFuture, .distantPast),
        (.distantFuture, .distantFuture, .distantFuture),
        (Timestamp(seconds: 0), .distantPast, .distantFuture),
    ])
    func ignoresExtremeTimes(until: Timestamp, failed: Timestamp, now: Timestamp) {
        #expect(
            !FailurePolicy.isBlacklisted(blacklistedUntil: until, lastFailedAt: failed, at: now))
    }

    @Test func theUserMayChooseTheStatusesThatBlacklist() throws {
        let statuses = try #require(StatusSet("404,500-501"))
        func failureClass(_ status: Int?, _ reason: FailureReason = .httpStatus) -> FailureClass {
            FailurePolicy.failureClass(of: reason, httpStatus: status, blacklisting: statuses)
        }
        #expect([404, 500, 501].allSatisfy { failureClass($0) == .permanent })
        #expect([410, 502, 200].allSatisfy { failureClass($0) == .transient })
        #expect(failureClass(401) == .ours && failureClass(nil) == .ours)
        #expect(failureClass(410, .notAnImage) == .permanent)
    }

    // MARK: Over weeks

    /// One URL's row and its changes by runs.
    private struct URLHistory {
        /// The end of a run that requests the URL.
        enum End {
            case success
            case failure(FailureReason, Int?)

            static let gone = End.failure(.httpStatus, 404)
            static let down = End.failure(.httpStatus, 503)
            static let locked = End.failure(.httpStatus, 403)
        }

        private struct Row {
            let failureClass: FailureClass
            let runs: Int
            let lastFailedAt: Timestamp
            let blacklistedUntil: Timestamp?
        }

        private var row: Row?

        /// Returns whether the URL was requested.
        mutating func run(hour: Int, _ end: End) -> Bool {
            let now = Timestamp(seconds: 1_795_000_000 + Int64(hour) * 3600)
            if let row,
                FailurePolicy.isBlacklisted(
                    blacklistedUntil: row.blacklistedUntil, lastFailedAt: row.lastFailedAt, at: now)
            {
                return false
            }
            guard case .failure(let reason, let status) = end else {
                row = nil
                return true
            }
            let failureClass = FailurePolicy.failureClass(of: reason, httpStatus: status)
            guard failureClass != .ours else { return true }
            let runs = FailurePolicy.nextRunsInARow(
                previous: row.map { ($0.failureClass, $0.runs) }, now: failureClass)
            let confirmations = FailurePolicy.confirmations(
                failureClass, reason: reason, runsInARow: runs)
            row = Row(
                failureClass: failureClass, runs: runs, lastFailedAt: now,
                blacklistedUntil: FailurePolicy.blacklistDuration(confirmations: confirmations)
                    .map(now.advanced(by:)))
            return true
        }

        /// The hours, with one run each hour, at which the URL was requested. The n-th request
        /// ends as the n-th of `ends`, later ones as the last.
        static func hoursAsked(_ ends: [End], weeks: Int) -> [Int] {
            var history = URLHistory()
            var asked: [Int] = []
            for hour in 0..<weeks * 7 * 24
            where history.run(hour: hour, ends[min(asked.count, ends.count - 1)]) {
                asked.append(hour)
            }
            return asked
        }
    }

    @Test func requestsARemovedURLLessAndLessOften() {
        let asked = URLHistory.hoursAsked([.gone], weeks: 14)
        #expect(asked == [0, 1, 7, 31, 199, 919, 1639])
    }

    @Test func blacklistsATransientFailureAfterFiveRuns() {
        let asked = URLHistory.hoursAsked([.down], weeks: 10)
        #expect(asked == [0, 1, 2, 3, 4, 5, 11, 35, 203, 923, 1643])
        // The entry of the fifth run ends after an hour, so only runs within the hour show it.
        var history = URLHistory()
        let hours = [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5]
        let isAsked = zip(hours, 0...).map { hour, run in
            history.run(hour: hour, run % 2 == 0 ? .down : .locked)
        }
        #expect(isAsked == Array(repeating: true, count: 9) + [false, true])
    }

    @Test func restartsTheCountWhenTheClassChanges() {
        // Two permanent failures blacklist for 6 hours. The transient ones then begin at 1, and so
        // does the permanent one after them, though five runs in a row had failed by then.
        let asked = URLHistory.hoursAsked([.gone, .gone, .down, .down, .gone], weeks: 1)
        #expect(asked == [0, 1, 7, 8, 9, 10, 16, 40])
    }

    @Test func countsReasonsOfOneClassTogether() {
        let ends: [URLHistory.End] = [
            .failure(.dns, nil), .failure(.tls, nil), .down, .failure(.stalled, 200),
            .failure(.interrupted, 200), .failure(.connect, nil), .down,
        ]
        #expect(URLHistory.hoursAsked(ends, weeks: 1) == [0, 1, 2, 3, 4, 5, 11, 35])
    }

    @Test func restartsTheCountAfterASuccess() {
        let gone = URLHistory.hoursAsked([.gone, .gone, .gone, .success, .gone], weeks: 1)
        #expect(gone == [0, 1, 7, 31, 32, 33, 39, 63])
        // Requested every hour until the fifth failure since the success, at hour 9.
        let down = URLHistory.hoursAsked(
            [.down, .down, .down, .down, .success, .down], weeks: 1)
        #expect(down == Array(0...10) + [16, 40])
    }

    @Test func ignoresLocalFailures() {
        let locked = URLHistory.hoursAsked([.locked], weeks: 2)
        #expect(locked == Array(0..<14 * 24))
        // They neither count nor interrupt consecutive runs: the fifth transient failure is at
        // hour 6.
        let ends: [URLHistory.End] = [
            .down, .down, .locked, .down, .failure(.disk, nil), .down, .down,
        ]
        #expect(URLHistory.hoursAsked(ends, weeks: 1) == [0, 1, 2, 3, 4, 5, 6, 7, 13, 37])
    }
}
