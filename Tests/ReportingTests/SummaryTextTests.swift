import PrefetchModel
import Testing

@testable import Reporting

@Suite(.timeLimit(.minutes(5)))
struct SummaryTextTests {
    @Test func listsTheFirstTenFailures() throws {
        var text = SummaryText()
        try text.note(Samples.downloaded())
        for line in 1...13 { text.note(Samples.failed(line: line)) }
        let failures = (1...10).map {
            "  m.txt:\($0): https://example.org/\($0).jpg: http-status: 404 Not Found\n"
        }
        #expect(
            text.render(Samples.summary()) == """
                prefetch: 3000 entries: 2950 downloaded, 37 fresh, 13 failed
                  failed: 9 http-status, 3 dns, 1 corrupt-image
                \(failures.joined())  ... and 3 more
                  received 225 MiB in 2963 requests, stored 180 MiB (80.0 % of received)
                  took 4.2 s: 714 entries/s, 53.6 MiB/s
                  cache: /var/cache/images
                hint: --report FILE writes one line for each entry

                """)
        text.hasReport = true
        #expect(!text.render(Samples.summary()).contains("hint:"))
    }

    @Test func isShortForAWarmCache() {
        var counters = RunCounters()
        counters.entriesRead = 1
        counters.count(.fresh)
        let summary = RunSummary(
            counters: counters, startedAt: Timestamp(seconds: 0), elapsed: .milliseconds(20),
            exitStatus: 0, cacheDirectory: "/c")
        #expect(
            SummaryText().render(summary) == """
                prefetch: 1 entry: 1 fresh
                  took 20 ms: 50.0 entries/s
                  cache: /c

                """)
    }

    @Test func saysThatNothingWasToDo() {
        let summary = RunSummary(
            counters: RunCounters(), startedAt: Timestamp(seconds: 0), elapsed: .zero,
            exitStatus: 0, cacheDirectory: "/c")
        #expect(
            SummaryText().render(summary)
                == "prefetch: 0 entries: there was nothing to do\n  took 0 ms\n  cache: /c\n")
    }

    @Test func saysWhyTheRunEnded() {
        var counters = RunCounters()
        counters.entriesRead = 3
        counters.count(.cancelled, times: 2)
        counters.count(.blacklisted)
        let summary = RunSummary(
            counters: counters, startedAt: Timestamp(seconds: 0), elapsed: .seconds(75),
            exitStatus: 2, cacheDirectory: "/c", fatalMessage: "/c: No space\nleft",
            stoppedBySignal: 15)
        #expect(
            SummaryText().render(summary) == """
                prefetch: /c: No space\\nleft
                prefetch: stopped by SIGTERM
                prefetch: 3 entries: 1 blacklisted, 2 cancelled
                  took 1 min 15 s: 0.04 entries/s
                  cache: /c
                hint: --retry-failed asks blacklisted URLs again
                hint: the same command goes on from here; what is fresh is not fetched

                """)
    }

    @Test func theHintOfAFatalErrorIsALineOfItsOwn() {
        var summary = Samples.summary()
        summary.fatalMessage = "/c: write: No space left on device"
        summary.fatalHint = "make room and run again"
        let lines = SummaryText().render(summary).split(separator: "\n")
        #expect(lines.first == "prefetch: /c: write: No space left on device")
        #expect(lines.contains("hint: make room and run again"))
    }

    @Test func coloursOnlyAddToTheWords() {
        var coloured = SummaryText()
        coloured.usesColor = true
        let text = coloured.render(Samples.summary())
        #expect(text.hasPrefix("\u{1B}[1;31mprefetch: 3000 entries"))
        let plain = text.replacing("\u{1B}[1;31m", with: "").replacing("\u{1B}[0m", with: "")
        #expect(plain == SummaryText().render(Samples.summary()))
    }

    @Test func neutralisesWhatComesFromOutside() {
        var result = Samples.failed(line: 1, message: "\u{1B}]0;x\u{7}\nfaked\u{202E}\u{9B}")
        result.manifest = "m\n\u{1B}[2J.txt"
        result.url = "https://u:SECRET@h/\u{1B}[2J"
        var text = SummaryText()
        text.note(result)
        var summary = Samples.summary()
        summary.cacheDirectory = "/c\r\u{1B}[A"
        let rendered = text.render(summary)
        #expect(rendered.contains(#"  m\n\u{1B}[2J.txt:1: https://***@h/%1B[2J: http-status: "#))
        #expect(rendered.contains(#"\u{1B}]0;x\u{7}\nfaked\u{202E}\u{9B}"# + "\n"))
        #expect(rendered.contains(#"cache: /c\r\u{1B}[A"#))
        #expect(!rendered.contains("SECRET"))
        #expect(!rendered.unicodeScalars.contains { $0.value < 0x20 && $0 != "\n" })
    }

    @Test(arguments: [
        ("plain – ünïcode 猫 👨‍👩‍👧", "plain – ünïcode 猫 👨‍👩‍👧"),
        ("a\tb\r\n", #"a\tb\r\n"#), ("\u{0}\u{7F}\u{85}", #"\u{0}\u{7F}\u{85}"#),
        ("\u{2028}\u{2066}\u{FEFF}\u{AD}", #"\u{2028}\u{2066}\u{FEFF}\u{AD}"#),
        (#"back\slash"#, #"back\slash"#),
    ])
    func makesTextPrintable(text: String, expected: String) {
        #expect(printable(text) == expected)
        #expect(printable(expected) == expected)
    }

    @Test(arguments: [
        ("no secret here", "no secret here"),
        ("mail a@b about x=1", "mail a@b about x=1"),
        ("to https://u:p@h/x: refused", "to https://***@h/x: refused"),
        ("to \"https://u:p@h/x\" (https://v:q@i)", "to \"https://***@h/x\" (https://***@i)"),
        ("m.txt:3:https://u:p'p@h/?sig=1&a=2 bad", "m.txt:3:https://***@h/?sig=***&a=2 bad"),
        ("a  b\n https://h/?token=1", "a  b\n https://h/?token=***"),
    ])
    func redactsURLsInMessages(message: String, expected: String) {
        #expect(redacted(message) == expected)
    }

    @Test(arguments: [
        (-5, "0 ms"), (0, "0 ms"), (999, "999 ms"), (1000, "1.0 s"), (59_949, "59.9 s"),
        (59_950, "1 min 0 s"), (192_400, "3 min 12 s"), (7_500_000, "2 h 5 min"),
        (273_600_000, "3 d 4 h"),
    ])
    func durationsHaveTwoUnits(milliseconds: Int, text: String) {
        #expect(durationText(.milliseconds(milliseconds)) == text)
    }
}
