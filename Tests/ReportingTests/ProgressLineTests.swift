import PrefetchModel
import Testing

@testable import Reporting

@Suite(.timeLimit(.minutes(15)))
struct ProgressLineTests {
    private func progress(
        done: Int, of total: Int, seconds: Double, failed: Int = 0, isTotalKnown: Bool = true,
        bytes: Int = 0
    ) -> RunProgress {
        var counters = RunCounters()
        counters.entriesRead = total
        counters.count(.downloaded, times: done - failed)
        counters.count(.failed, reason: .dns, times: failed)
        counters.bytesReceived = bytes
        return RunProgress(
            counters: counters, inFlight: 32, isTotalKnown: isTotalKnown,
            elapsed: .milliseconds(Int(seconds * 1000)))
    }

    @Test func cancelledEntriesDoNotCount() {
        var line = ProgressLine()
        _ = line.render(progress(done: 0, of: 100, seconds: 0), width: 200)
        _ = line.render(progress(done: 10, of: 100, seconds: 10), width: 200)
        var stopping = progress(done: 10, of: 100, seconds: 11)
        stopping.counters.count(.cancelled, times: 87)
        stopping.isStopping = true
        let text = visible(line.render(stopping, width: 200))
        #expect(text.hasPrefix("prefetch: 10/100 10%, "), "\(text)")
        #expect(text.hasSuffix(", stopping, ^C again to quit now"), "\(text)")
        #expect(!text.contains(" left"), "\(text)")
    }

    /// The visible part of a rendering.
    private func visible(_ text: String) -> String {
        #expect(text.hasPrefix("\r"))
        #expect(text.hasSuffix("\u{1B}[K"))
        return String(text.dropFirst().dropLast(3))
    }

    @Test func showsEverythingOnAWideTerminal() {
        var line = ProgressLine()
        var text = ""
        for tenth in 1...100 {
            text = line.render(
                progress(
                    done: tenth * 10, of: 3000, seconds: Double(tenth) / 10, failed: 3,
                    bytes: tenth << 20), width: 200)
        }
        #expect(
            visible(text)
                == "prefetch: 1000/3000 33%, 100/s, 100 MiB, 10.0 MiB/s, 32 in flight, 3 failed, "
                + "20 s left")
    }

    @Test func namesTheHostThatHoldsTheRunUp() {
        var line = ProgressLine()
        var held = progress(done: 10, of: 100, seconds: 1)
        held.holdUp = (
            host: "https://a.example", perSecond: nil, inFlight: 8, waiting: 82, pause: nil
        )
        #expect(
            visible(line.render(held, width: 200)).hasSuffix(
                ", held up by https://a.example (8 at once, 82 waiting)"))
        held.holdUp = (
            host: "https://a.example", perSecond: nil, inFlight: 0, waiting: 82,
            pause: .milliseconds(11_600)
        )
        #expect(
            line.line(held).hasSuffix(
                ", held up by https://a.example (82 waiting, next request in 12 s)"))
        #expect(!visible(line.render(held, width: 60)).contains("held up"))
    }

    @Test func omitsUnknownParts() {
        var line = ProgressLine()
        var text = ""
        for second in 1...10 {
            text = line.render(
                progress(
                    done: second, of: 100, seconds: Double(second), isTotalKnown: false), width: 200
            )
        }
        #expect(visible(text) == "prefetch: 10 done, 1.0/s, 32 in flight")
    }

    @Test func predictsOnlyFromASteadyRate() {
        var line = ProgressLine()
        var seconds = 0.0
        var done = 0
        func advance(by duration: Double, rate: Double) -> String {
            var text = ""
            for _ in 0..<Int(duration * 10) {
                seconds += 0.1
                done += Int(rate / 10)
                text = line.render(
                    progress(done: done, of: 1_000_000, seconds: seconds), width: 200)
            }
            return visible(text)
        }
        #expect(!advance(by: 2.9, rate: 1000).contains("left"))
        #expect(advance(by: 2, rate: 1000).hasSuffix("16 min 35 s left"))
        // After the fresh entries, the prediction is withdrawn at once.
        #expect(!advance(by: 3, rate: 50).contains("left"))
        #expect(advance(by: 90, rate: 50).hasSuffix("left"))
        // An origin stalls.
        #expect(!advance(by: 5, rate: 0).contains("left"))
    }

    @Test func says100PercentOnlyAtTheEnd() {
        var line = ProgressLine()
        #expect(
            visible(line.render(progress(done: 99_999, of: 100_000, seconds: 1), width: 30))
                .contains("99999/100000 99%"))
        #expect(
            visible(line.render(progress(done: 100_000, of: 100_000, seconds: 2), width: 30))
                .contains("100000/100000 100%"))
        #expect(
            visible(line.render(progress(done: 0, of: 0, seconds: 3), width: 30)).contains(
                "0/0 100%"))
    }

    @Test func neverReachesTheLastColumn() {
        for width in [1, 2] + Array(20...120) + [Int.max] {
            var line = ProgressLine()
            var text = ""
            for second in 1...10 {
                text = line.render(
                    progress(
                        done: second * 1000, of: 3_000_000, seconds: Double(second), failed: 7,
                        bytes: second << 25), width: width)
            }
            let shown = visible(text)
            #expect(shown.count <= max(1, width - 1))
            #expect(width < 20 || shown.contains("10000/3000000 0%"))
            #expect(width < 30 || shown.contains("7 failed"))
            #expect(shown.utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7F })
        }
    }

    @Test func rendersTenTimesASecondAtMost() {
        var line = ProgressLine()
        let start = ContinuousClock.now
        let shown = (0..<1000).filter { millisecond in
            line.shouldRender(at: start.advanced(by: .milliseconds(millisecond)))
        }
        #expect(shown == Array(stride(from: 0, to: 1000, by: 100)))
    }

    @Test func ignoresProgressWithoutElapsedTime() {
        var line = ProgressLine()
        _ = line.render(progress(done: 10, of: 100, seconds: 1), width: 80)
        let text = visible(line.render(progress(done: 50, of: 100, seconds: 1), width: 80))
        #expect(text == "prefetch: 50/100 50%, 10.0/s, 32 in flight")
    }
}
