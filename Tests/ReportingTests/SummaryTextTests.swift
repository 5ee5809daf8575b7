import Testing

@testable import PrefetchModel
@testable import Reporting

@Suite(.timeLimit(.minutes(15)))
struct SummaryTextTests {
    @Test func listsTheFirstTenCauses() throws {
        var text = SummaryText()
        try text.note(Samples.downloaded())
        for line in 1...13 { text.note(Samples.failed(line: line, host: "h\(line)")) }
        let failures = (1...10).map {
            "  m.txt:\($0): https://h\($0)/\($0).jpg: http-status: 404 Not Found\n"
        }
        #expect(
            text.render(Samples.summary()) == """
                prefetch: 3000 entries: 2950 downloaded, 37 fresh, 13 failed
                  failed: 9 http-status, 3 dns, 1 corrupt-image
                \(failures.joined())  ... and 3 more
                  received 225 MiB in 2963 requests, stored 180 MiB (80.0 % of received)
                  took 4.2 s: 714 entries/s, 53.6 MiB/s
                  cache: /var/cache/images
                hint: `prefetch failed list` lists the failed URLs

                """)
    }

    /// Bad lines have no rows, and neither have URLs of hosts that were given up.
    @Test(
        arguments: [
            (FailureReason.invalidEntry, false, "--report FILE writes one line per entry"),
            (.invalidEntry, true, nil),
            (.bodyFilter, true, nil),
            (.connect, true, "`prefetch hosts` shows the hosts that do not respond"),
            (.httpStatus, true, "`prefetch failed list` lists the failed URLs"),
        ] as [(FailureReason, Bool, String?)])
    func hintNamesTheNextCommand(reason: FailureReason, hasReport: Bool, hint: String?) {
        var text = SummaryText()
        text.hasReport = hasReport
        var counters = RunCounters()
        counters.entriesRead = 20
        counters.count(.failed, reason: reason, times: 20)
        for line in 1...20 { text.note(Samples.failed(line: line, host: "h", reason: reason)) }
        var summary = Samples.summary()
        summary.counters = counters
        let lines = text.render(summary).split(separator: "\n").filter { $0.hasPrefix("hint: ") }
        #expect(lines.map { String($0.dropFirst(6)) } == [hint].compactMap(\.self))
    }

    @Test(arguments: [false, true])
    func excludedEntriesAreNamed(isQuiet: Bool) {
        var text = SummaryText()
        text.isQuiet = isQuiet
        var summary = Samples.summary()
        summary.counters = RunCounters()
        summary.counters.entriesRead = 13
        summary.counters.count(.excluded, times: 12)
        summary.counters.count(.excluded, reason: .belowMinimumSize)
        for line in 1...12 {
            text.note(
                EntryResult(
                    manifest: "m.txt", line: line, url: "https://h/\(line)", key: "\(line)",
                    outcome: .excluded, message: "not in the cache (--offline)"))
        }
        let rendered = text.render(summary)
        #expect(
            rendered.contains("  m.txt:1: https://h/1: excluded: not in the cache (--offline)\n"))
        #expect(rendered.contains("  ... and \(isQuiet ? 2 : 3) more excluded\n"), "\(rendered)")
    }

    @Test func countsVariantsWhereThereAreSeveral() {
        var summary = Samples.summary()
        summary.hasSeveralVariants = true
        summary.counters.variantsMade = 5900
        let head = "\n  received 225 MiB in 2963 requests, stored 180 MiB"
        #expect(
            SummaryText().render(summary).contains(
                "\(head) in 5900 variants (80.0 % of received)\n"))
        summary.counters.variantsMade = 1
        #expect(
            SummaryText().render(summary).contains("\(head) in 1 variant (80.0 % of received)\n"))
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
                  took 20 ms
                  cache: /c

                """)
    }

    @Test func saysThatThereWasNothingToDo() {
        let summary = RunSummary(
            counters: RunCounters(), startedAt: Timestamp(seconds: 0), elapsed: .zero,
            exitStatus: 0, cacheDirectory: "/c")
        #expect(
            SummaryText().render(summary)
                == "prefetch: 0 entries: nothing to do\n  took 0 ms\n  cache: /c\n")
    }

    @Test func saysWhyTheRunEnded() {
        var counters = RunCounters()
        counters.entriesRead = 3
        counters.count(.cancelled, times: 2)
        counters.count(.blacklisted)
        var summary = RunSummary(
            counters: counters, startedAt: Timestamp(seconds: 0), elapsed: .seconds(75),
            exitStatus: 2, cacheDirectory: "/c")
        summary.fatalMessage = "/c: No space\nleft"
        summary.stoppedBySignal = 15
        #expect(
            SummaryText().render(summary) == """
                prefetch: /c: No space\\nleft
                prefetch: stopped by SIGTERM
                prefetch: 3 entries: 1 blacklisted, 2 cancelled
                  took 1 min 15 s
                  cache: /c
                hint: `prefetch failed list --blacklisted` lists blacklisted URLs; --retry-failed \
                requests them again
                hint: run the same command again to resume; fresh images are not downloaded again

                """)
    }

    @Test func entriesWithOneCauseAreOneLine() {
        var text = SummaryText()
        for line in 1...9 { text.note(Samples.failed(line: line)) }
        for line in 10...12 {
            text.note(Samples.failed(line: line, host: "h", reason: .dns, message: "no such host"))
        }
        text.note(Samples.failed(line: 13, host: "h", reason: .corruptImage, message: "cut"))
        let lines = text.render(Samples.summary()).split(separator: "\n")
        #expect(
            lines[2...4] == [
                "  9 at https://example.org: http-status, first m.txt:1: "
                    + "https://example.org/1.jpg: 404 Not Found",
                "  3 at https://h: dns, first m.txt:10: https://h/10.jpg: no such host",
                "  m.txt:13: https://h/13.jpg: corrupt-image: cut",
            ])
        #expect(lines[5].hasPrefix("  received"))
        // The nine and the three have no lines of their own.
        #expect(lines.last == "hint: `prefetch failed list` lists the failed URLs")
    }

    @Test func linesWithTheSameMistakeAreOneLine() {
        var text = SummaryText()
        var counters = RunCounters()
        counters.entriesRead = 5
        for line in 1...5 {
            let problem = line < 4 ? "the scheme is missing" : "the URL has no host"
            var result = Samples.failed(
                line: line, reason: .invalidEntry, message: "m.txt:\(line): \(problem)")
            result.url = "nonsense"
            text.note(result)
            counters.count(.failed, reason: .invalidEntry)
        }
        var summary = Samples.summary()
        summary.counters = counters
        let lines = text.render(summary).split(separator: "\n")
        #expect(
            lines[2...3] == [
                "  3 entries: invalid-entry, first m.txt:1: nonsense: the scheme is missing",
                "  2 entries: invalid-entry, first m.txt:4: nonsense: the URL has no host",
            ])
    }

    @Test func anOutageStandsFirstAndIsOneCause() {
        var text = SummaryText()
        text.note(Samples.failed(line: 1, reason: .corruptImage, message: "cut"))
        for line in 2...9 {
            text.note(Samples.failed(line: line, host: "h\(line)", reason: .connect, message: nil))
        }
        var summary = Samples.summary()
        summary.outage = Outage(
            reason: .connect, failures: 8, heldBack: 8, asked: 9, hostCount: 8, hosts: [])
        let lines = text.render(summary).split(separator: "\n")
        #expect(
            lines[1]
                == "  outage at 8 hosts: 8 of 9 requests failed (connect); "
                + "these URLs will be retried next time")
        #expect(lines[2].hasPrefix("  failed: "))
        #expect(lines[3] == "  8 entries: connect, first m.txt:2: https://h2/2.jpg")
        #expect(lines[4] == "  m.txt:1: https://example.org/1.jpg: corrupt-image: cut")
    }

    @Test func namesTheHTTPStatusThatAllFailuresOfAnOutageHave() {
        var summary = Samples.summary()
        summary.outage = Outage(
            reason: .httpStatus, failures: 41, heldBack: 41, asked: 41, hostCount: 1,
            hosts: ["https://o"])
        func outageLine(_ statuses: [Int]) -> String? {
            var text = SummaryText()
            for (line, status) in statuses.enumerated() {
                var result = Samples.failed(line: line, host: "o")
                result.httpStatus = status
                text.note(result)
            }
            let lines = text.render(summary).split(separator: "\n")
            return lines.first { $0.hasPrefix("  outage at https://o: ") }.map { String($0) }
        }
        let end = "; these URLs will be retried next time"
        let start = "  outage at https://o: all 41 requests failed "
        #expect(outageLine([500, 500, 404]) == "\(start)(HTTP 500)\(end)")
        #expect(outageLine([500, 503]) == "\(start)(http-status)\(end)")
    }

    @Test func aFullDiskIsSaidOnce() {
        var text = SummaryText()
        var summary = Samples.summary(exitStatus: 2)
        summary.counters = RunCounters()
        summary.counters.entriesRead = 12
        for line in 1...12 {
            text.note(Samples.failed(line: line, reason: .disk, message: "/c: No space left"))
            summary.counters.count(.failed, reason: .disk)
        }
        summary.fatalMessage = "/c: No space left"
        let rendered = text.render(summary)
        #expect(rendered.ranges(of: "No space left").count == 1, "\(rendered)")
        #expect(rendered.contains("\n  failed: 12 disk\n  took"))
        #expect(!rendered.contains("hint:"))
    }

    @Test func newFailuresComeBeforeKnownOnes() {
        var text = SummaryText()
        for line in 1...3 {
            var result = Samples.failed(line: line)
            result.isKnown = true
            text.note(result)
        }
        text.note(Samples.failed(line: 4))
        var summary = Samples.summary()
        summary.counters = RunCounters()
        summary.counters.entriesRead = 7
        summary.counters.count(.failed, reason: .httpStatus, times: 4)
        summary.counters.count(.blacklisted, times: 3)
        summary.counters.knownFailures = 3
        for line in 5...7 {
            var result = Samples.failed(line: line, message: "failed with HTTP 404")
            result.outcome = .blacklisted
            text.note(result)
        }
        let lines = text.render(summary).split(separator: "\n")
        #expect(
            lines[2...4] == [
                "  m.txt:4: https://example.org/4.jpg: http-status: 404 Not Found",
                "  3 at https://example.org: http-status (known), first m.txt:1: "
                    + "https://example.org/1.jpg: 404 Not Found",
                "  m.txt:5: https://example.org/5.jpg: blacklisted: failed with HTTP 404",
            ])
        text.isQuiet = true
        let quiet = text.render(summary).split(separator: "\n")
        #expect(quiet[2] == lines[2])
        #expect(quiet[3] == "  6 known failures not listed")
        #expect(quiet[4].hasPrefix("  took"))
    }

    /// Entries end in a different order each time; the text is the same.
    @Test(arguments: [[2, 3, 4, 9], [9, 4, 3, 2], [4, 2, 9, 3]])
    func theFirstIsTheFirstOfTheList(lines: [Int]) {
        var groups = FailureGroups()
        groups.note(Samples.failed(line: 9, manifest: "a.txt", host: "a.example"))
        for line in lines {
            groups.note(Samples.failed(line: line, host: line == 9 ? "z.example" : "b.example"))
            groups.note(Samples.failed(line: line + 10, host: "c.example"))
        }
        groups.note(Samples.failed(line: 1, host: "c.example", reason: .dns))
        #expect(
            groups.ordered(outage: nil) { _ in true }.map(\.line) == [
                "4 at https://c.example: http-status, first m.txt:12: "
                    + "https://c.example/12.jpg: 404 Not Found",
                "3 at https://b.example: http-status, first m.txt:2: "
                    + "https://b.example/2.jpg: 404 Not Found",
                "a.txt:9: https://a.example/9.jpg: http-status: 404 Not Found",
                "m.txt:1: https://c.example/1.jpg: dns: 404 Not Found",
                "m.txt:9: https://z.example/9.jpg: http-status: 404 Not Found",
            ])
    }

    /// Like a list with a million hosts that are all down.
    @Test func hostsWithoutEndAreCountedTogether() {
        var groups = FailureGroups()
        let hosts = FailureGroups.mostGroups + 1000
        for line in 1...hosts {
            groups.note(
                Samples.failed(
                    line: line, host: "h\(line)", reason: line % 2 == 0 ? .dns : .connect))
        }
        let ordered = groups.ordered(outage: nil) { _ in true }
        #expect(ordered.count == FailureGroups.mostGroups + 2)
        #expect(ordered.reduce(0) { $0 + $1.count } == hosts)
        #expect(
            ordered.first?.line == "500 at other hosts: connect, first m.txt:257: "
                + "https://h257/257.jpg: 404 Not Found")
        groups.note(Samples.failed(line: 1, reason: .invalidEntry, message: "m.txt:1: odd"))
        groups.note(Samples.failed(line: 2, reason: .invalidEntry, message: "m.txt:2: odder"))
        let lines = groups.ordered(outage: nil) { $0.reason == .invalidEntry }.map(\.line)
        #expect(
            lines == ["2 entries: invalid-entry, first m.txt:1: https://example.org/1.jpg: odd"])
        var large = FailureGroups()
        let name = String(repeating: "a", count: 60_000)
        for line in 1...100 { large.note(Samples.failed(line: line, host: "\(name)\(line)")) }
        let kept = large.ordered(outage: nil) { _ in true }
        #expect(kept.reduce(0) { $0 + $1.count } == 100)
        #expect(kept.count < 20)
    }

    @Test(arguments: [
        (999, 5000, false), (1000, 99, false), (1000, 100, true), (60_000, 3_000_000, true),
    ])
    func aRateTakesASecondAndAHundredEntries(milliseconds: Int, entries: Int, hasRate: Bool) {
        var summary = Samples.summary()
        summary.elapsed = .milliseconds(milliseconds)
        summary.counters = RunCounters()
        summary.counters.entriesRead = entries
        summary.counters.count(.fresh, times: entries)
        #expect(SummaryText().render(summary).contains("entries/s") == hasRate)
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

    @Test func escapesForeignText() {
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

    @Test func shortensDataURLs() {
        let url = "data:image/png;base64," + String(repeating: "A", count: 5_000)
        let shown = "\(url.prefix(64))… (4.90 KiB)"
        #expect(printable("a: \(url) b") == "a: \(shown) b")
        #expect(printable(url) == shown && printable(shown) == shown)
        #expect(printable("data:,a\tb") == "data:,a\\tb")
        #expect(printable(url, shortensData: false) == url)
    }

    @Test(arguments: [
        ("no secret here", "no secret here"),
        ("mail a@b about x=1", "mail a@b about x=1"),
        ("to https://u:p@h/x: refused", "to https://***@h/x: refused"),
        ("to \"https://u:p@h/x\" (https://v:q@i)", "to \"https://***@h/x\" (https://***@i)"),
        ("m.txt:3:https://u:p'p@h/?sig=1&a=2 bad", "m.txt:3:https://***@h/?sig=***&a=2 bad"),
        ("a  b\n https://h/?token=1", "a  b\n https://h/?token=***"),
        ("(at https://h/?token=1): b", "(at https://h/?token=***): b"),
        ("[https://h/?sig=1], https://h/?sig=2; c", "[https://h/?sig=***], https://h/?sig=***; c"),
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
