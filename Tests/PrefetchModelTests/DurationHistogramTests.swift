import PrefetchModel
import SeededRandom
import Testing

@Suite(.timeLimit(.minutes(15)))
struct DurationHistogramTests {
    @Test func isEmptyAtFirst() {
        #expect(DurationHistogram().quantile(0.5) == nil)
    }

    @Test func smallDurationsAreExact() {
        for microseconds in 0..<16 {
            var histogram = DurationHistogram()
            histogram.note(.microseconds(microseconds))
            #expect(histogram.quantile(0.5) == .microseconds(microseconds))
        }
    }

    /// From microseconds to an hour, at every power of two and around it.
    @Test func oneDurationIsKnownWithinASixteenth() {
        for exponent in 4..<32 {
            for offset in [-1, 0, 1, 1 << exponent / 3, 1 << exponent / 2 + 1] {
                let microseconds = (1 << exponent) + offset
                guard microseconds < 1 << 32 else { continue }
                var histogram = DurationHistogram()
                histogram.note(.microseconds(microseconds))
                let found = histogram.quantile(1)?.secondsValue ?? 0
                let exact = Double(microseconds) * 1e-6
                // Floating-point numbers are rounded.
                let limit = exact / 16 * (1 + 1e-9)
                #expect(abs(found - exact) <= limit, "\(microseconds) µs: \(found)")
            }
        }
    }

    @Test func percentilesAreWithinASixteenthOfTheExactOnes() {
        let seed: UInt64 = 7
        var random = SplitMix(seed: seed)
        var histogram = DurationHistogram()
        var all: [Int] = []
        for _ in 0..<10_000 {
            let microseconds = 1 << Int.random(in: 3..<24, using: &random)
            let value = microseconds + Int.random(in: 0..<microseconds, using: &random)
            all.append(value)
            histogram.note(.microseconds(value))
        }
        all.sort()
        for share in [0.01, 0.5, 0.95, 0.99, 1] {
            let exact = Double(all[Int((share * Double(all.count)).rounded(.up)) - 1]) * 1e-6
            let found = histogram.quantile(share)?.secondsValue ?? 0
            #expect(abs(found - exact) <= exact / 16 * (1 + 1e-9), "\(share), seed \(seed)")
        }
        #expect(histogram.count == all.count)
    }

    @Test func extremesAreCounted() {
        var histogram = DurationHistogram()
        for duration in [Duration.seconds(-3), .zero, .seconds(1 << 40), .seconds(Int64.max)] {
            histogram.note(duration)
        }
        #expect(histogram.count == 4)
        #expect(histogram.quantile(0.25) == .zero)
        let longest = histogram.quantile(1) ?? .zero
        #expect(longest > .seconds(3600) && longest < .seconds(5000))
    }
}
