import PrefetchModel
import Scheduling
import Testing

/// Outages as cron's mail and the readers of the cache see them.
@Suite(.timeLimit(.minutes(15)))
struct OutageMonthTests {
    enum Expiry: CaseIterable, Sendable {
        case together, oneByOne
    }

    /// An outage for every kind of failure, with a URL that always fails, and pruned history.
    struct Scene: Sendable, CustomTestStringConvertible {
        let reason: FailureReason
        let status: Int?
        let count: Int
        let expiry: Expiry
        let constant: Int?
        let history: Int?

        var testDescription: String {
            "\(count) × \(reason.rawValue) \(status ?? 0), \(expiry), "
                + "\(constant ?? 0), history \(history ?? 0)"
        }
    }

    static let scenes: [Scene] = HostFaultRuleTests.kinds.flatMap { kind in
        [10, 40].flatMap { count in
            Expiry.allCases.flatMap { expiry in
                [nil, 403, 404, 500].flatMap { constant in
                    [nil, 2].map { history in
                        Scene(
                            reason: kind.reason, status: kind.status, count: count,
                            expiry: expiry, constant: constant, history: history)
                    }
                }
            }
        }
    }

    private static func month(_ scene: Scene) -> SimulatedMonth {
        var images = (0..<scene.count).map { number in
            SimulatedMonth.Image(
                url: "\(number)",
                lifetimeHours: scene.expiry == .together ? 24 : 24 + 6 * (number % 20))
        }
        if let constant = scene.constant {
            images.append(SimulatedMonth.Image(url: "constant", constant: constant))
        }
        var month = SimulatedMonth(images)
        month.history = scene.history.map { .seconds($0 * 86400) }
        return month
    }

    /// The outage lasts from day 6 to 9, or to 16 where images expire one by one.
    @Test(arguments: scenes)
    func anOutageIsMailedOnceAndEndsForAllReadersAtOnce(scene: Scene) {
        var month = Self.month(scene)
        let end = scene.expiry == .together ? 9 * 24 : 16 * 24
        var reported: Int?
        var endings = 0
        for hours in stride(from: 0, to: 30 * 24, by: 6) {
            let isOut = (6 * 24..<end).contains(hours)
            let run = month.run(at: hours) { _ in isOut ? (scene.reason, scene.status) : nil }
            let readers = run.fresh
            if run.namesOutage {
                #expect(reported == nil, "reported again after \(hours) h")
                #expect(run.new > 0, "reported without a mail after \(hours) h")
                reported = hours
            }
            endings += run.ended
            if isOut {
                // Never silent about the loss of most images.
                if readers * 2 < scene.count { #expect(reported != nil, "\(hours) h") }
                if let reported, reported < hours {
                    #expect(!run.isMailed, "mailed after \(hours) h")
                }
            } else if hours >= end {
                #expect(readers == scene.count, "\(hours) h")
                if hours > end { #expect(!run.isMailed, "mailed after \(hours) h") }
            } else if hours > 24 {
                #expect(!run.isMailed, "mailed after \(hours) h")
            }
        }
        #expect(reported != nil)
        #expect(endings == 1)
    }

    /// Servers behind one name that fail in different ways, image by image or run by run.
    @Test(arguments: Expiry.allCases, [false, true])
    func mixedKindsAreOneOutage(expiry: Expiry, changes: Bool) {
        let kinds: [(reason: FailureReason, status: Int?)] = [
            (.httpStatus, 404), (.httpStatus, 503), (.notAnImage, 200), (.timeout, nil),
        ]
        var month = Self.month(
            Scene(
                reason: .httpStatus, status: 404, count: 40, expiry: expiry, constant: 403,
                history: nil))
        let end = expiry == .together ? 9 * 24 : 16 * 24
        var (reports, endings) = (0, 0)
        for hours in stride(from: 0, to: 20 * 24, by: 6) {
            let isOut = (6 * 24..<end).contains(hours)
            let run = month.run(at: hours) { image in
                isOut ? kinds[((Int(image.url) ?? 0) + (changes ? hours / 6 : 0)) % 4] : nil
            }
            reports += run.namesOutage ? 1 : 0
            endings += run.ended
            if isOut, reports > 0, !run.namesOutage { #expect(!run.isMailed, "\(hours) h") }
            if hours >= end { #expect(run.fresh == 40, "\(hours) h") }
        }
        #expect(reports == 1)
        #expect(endings == 1)
    }

    /// One request in each run, beside the URL that always fails.
    @Test(arguments: HostFaultRuleTests.kinds)
    func oneProbeFindsTheRecovery(kind: (reason: FailureReason, status: Int?)) {
        guard FailurePolicy.failureClass(of: kind.reason, httpStatus: kind.status) != .ours else {
            // Refusals are never blacklisted: each image is requested.
            return
        }
        var month = Self.month(
            Scene(
                reason: kind.reason, status: kind.status, count: 30, expiry: .together,
                constant: nil, history: nil))
        for hours in stride(from: 0, to: 20 * 24, by: 6) {
            let isOut = (48..<16 * 24).contains(hours)
            let run = month.run(at: hours) { _ in isOut ? (kind.reason, kind.status) : nil }
            if hours > 54 + 24, isOut { #expect(run.requests == 1, "\(hours) h") }
            if hours == 16 * 24 { #expect(run.requests == 30 && run.fresh == 30) }
        }
    }

    /// Removed images hide the recovery of the others no longer than a few runs, wherever in the
    /// list they are: five runs, log₂ of the number of images, miss half of them once in 32 months.
    @Test(arguments: [[0], Array(0..<10), Array(15..<30), Array(0..<15)])
    func aPartIsGone(gone: [Int]) {
        let images = (0..<30).map { SimulatedMonth.Image(url: "\($0)") }
        var inTime = 0
        for seed in 0..<32 as Range<UInt64> {
            var month = SimulatedMonth(images, seed: seed)
            var recovered: Int?
            for hours in stride(from: 0, to: 12 * 24, by: 6) {
                let isOut = (48..<120).contains(hours)
                let run = month.run(at: hours) { image in
                    hours >= 48 && (isOut || Int(image.url).map(gone.contains) == true)
                        ? (.httpStatus, 404) : nil
                }
                if hours > 54 + 24, isOut { #expect(run.requests == 1, "\(hours) h") }
                // The removed images are news once.
                if recovered != nil { #expect(!run.isMailed, "\(hours) h") }
                if hours >= 120, run.fresh == 30 - gone.count, recovered == nil {
                    recovered = hours
                }
            }
            if let recovered, recovered < 120 + 5 * 6 { inTime += 1 }
        }
        #expect(inTime >= 28, "\(inTime) of 32")
    }

    /// After 30 days without a success the usual blacklist applies.
    @Test func aFaultEndsAfterAMonth() {
        var month = Self.month(
            Scene(
                reason: .httpStatus, status: 404, count: 10, expiry: .together, constant: nil,
                history: nil))
        var requests: [Int: Int] = [:]
        for hours in stride(from: 0, to: 50 * 24, by: 6) {
            let run = month.run(at: hours) { _ in hours >= 48 ? (.httpStatus, 404) : nil }
            requests[hours / 24, default: 0] += run.requests
        }
        #expect(requests[20] == 4)
        // All are requested once more, and then less and less often.
        #expect((32...33).contains { requests[$0, default: 0] >= 10 })
        #expect((43..<48).allSatisfy { requests[$0, default: 0] == 0 })
    }

    /// Half of the images may fail for good without being an outage.
    @Test(arguments: [(4, false), (19, false), (21, true), (40, true)])
    func theShareIsThatOfAllListedImages(failing: Int, isOutage: Bool) {
        var month = Self.month(
            Scene(
                reason: .httpStatus, status: 404, count: 40, expiry: .oneByOne, constant: 403,
                history: nil))
        var reported = false
        for hours in stride(from: 0, to: 12 * 24, by: 6) {
            let run = month.run(at: hours) { image in
                hours >= 48 && Int(image.url).map { $0 < failing } == true
                    ? (.httpStatus, 404) : nil
            }
            reported = reported || run.namesOutage
        }
        #expect(reported == isOutage)
    }
}
