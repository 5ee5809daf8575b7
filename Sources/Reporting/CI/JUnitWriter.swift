package import FileOutput
import PrefetchModel

/// Writes the results of a run as one JUnit test suite, for CI systems.
///
/// Each entry is a test case, with its list as class: failed and blacklisted entries are failures,
/// excluded and cancelled ones are skipped, as are known failures where only new ones count.
/// Duplicates have no case of their own. CI systems read the file into memory, so the number of
/// cases is limited, and one case stands for the rest. The attributes are known to Jenkins'
/// schema (`junit-10.xsd`) and GitLab.
///
/// Cases are written when entries end. Space for the counts is reserved at the start of the file,
/// which replaces an older one at the end.
package struct JUnitWriter: ~Copyable, Sendable {
    /// The limit of warm entries with a case.
    package static let mostPassing = 10_000
    /// The limit of failures with a case, and of skipped entries.
    package static let mostOthers = 50_000
    private static let bufferBytes = 64 << 10
    /// The size of the head without the suite's name.
    private static let headBytes = 640

    private var file: ReplacingFile
    private let name: String
    private let limits: (passing: Int, others: Int)
    private let ignoresKnown: Bool
    private var buffer: [UInt8] = []
    private var failure: OutputError?
    /// Entries, with and without a case.
    private var passing = 0
    private var failures = 0
    private var skipped = 0

    /// Replaces a file. The name of a single list is the suite's. With `ignoresKnown`, known
    /// failures and blacklisted entries do not count.
    package init(
        path: String, lists: [String], ignoresKnown: Bool = false,
        passing: Int = JUnitWriter.mostPassing, others: Int = JUnitWriter.mostOthers
    ) throws(OutputError) {
        let name = xmlText(lists.count == 1 ? lists[0] : "prefetch")
        let file = try ReplacingFile(path)
        try file.write(JUnitWriter.padded("", name: name))
        self.file = file
        self.name = name
        limits = (passing, others)
        self.ignoresKnown = ignoresKnown
    }

    func wantsResults(of outcome: Outcome) -> Bool {
        switch outcome {
        case .failed: failures < limits.others || ignoresKnown && skipped < limits.others
        case .blacklisted: (ignoresKnown ? skipped : failures) < limits.others
        case .excluded, .cancelled: skipped < limits.others
        case .duplicate: false
        case .downloaded, .revalidated, .fresh, .derived, .requested: passing < limits.passing
        }
    }

    /// Appends a case. The first error is kept for ``finish(_:)``.
    mutating func write(_ result: EntryResult) {
        guard wantsResults(of: result.outcome) else { return }
        let outcome = result.outcome == .failed ? nil : result.outcome.rawValue
        let message = [outcome, result.shownMessage].compactMap(\.self).joined(separator: ": ")
        let text = xmlText(message)
        let content: String?
        switch result.outcome {
        case .failed where ignoresKnown && result.isKnown, .blacklisted where ignoresKnown:
            guard skipped < limits.others else { return }
            skipped += 1
            content = "<skipped message=\"known failure: \(text)\"/>"
        case .failed, .blacklisted:
            guard failures < limits.others else { return }
            failures += 1
            let reason = result.reason ?? .internal
            content =
                "<failure type=\"\(reason.rawValue)\" message=\"\(text)\">"
                + "\(xmlText(result.shownEntry)): \(text)</failure>"
        case .excluded, .cancelled:
            skipped += 1
            content = "<skipped message=\"\(text)\"/>"
        case .downloaded, .revalidated, .fresh, .derived, .requested, .duplicate:
            passing += 1
            content = nil
        }
        let stages = result.stages
        let time = [stages.transfer, stages.decode, stages.encode]
            .compactMap(\.self).reduce(Duration.zero, +)
        append(
            list: result.manifest, name: result.shownURL, time: time.wholeMilliseconds, content)
        if buffer.count >= JUnitWriter.bufferBytes { flush() }
    }

    /// Appends the cases of the rest, writes the counts, and replaces the older file.
    mutating func finish(_ summary: RunSummary) throws(OutputError) {
        let counters = summary.counters
        passing += appendRest("warm", counters.warm - passing) { _ in nil }
        let known = counters.knownFailures + counters[.blacklisted]
        let ignored = ignoresKnown ? known : 0
        let failed = counters[.failed] + counters[.blacklisted] - ignored
        let others = counters[.excluded] + counters[.cancelled] + ignored
        failures += appendRest("failed", failed - failures) {
            "<failure type=\"more\" message=\"\($0) more failed or blacklisted\"/>"
        }
        skipped += appendRest("skipped", others - skipped) {
            "<skipped message=\"\($0) more skipped\"/>"
        }
        if let message = summary.fatalMessage {
            append(
                name: "run", "<error type=\"run\" message=\"\(xmlText(redacted(message)))\"/>")
        }
        buffer += "</testsuite>\n</testsuites>\n".utf8
        flush()
        do throws(OutputError) {
            if let failure { throw failure }
            try file.overwriteStart(head(summary))
            try file.commit()
        } catch {
            // The process may end without destroying this value.
            file.discard()
            throw error
        }
    }

    /// Appends one case for the entries without a case, if there are any.
    ///
    /// - Returns: the number of cases.
    private mutating func appendRest(
        _ kind: String, _ count: Int, content: (Int) -> String?
    ) -> Int {
        guard count > 0 else { return 0 }
        append(name: "\(count) more \(kind)", content(count))
        return 1
    }

    private mutating func append(
        list: String = "prefetch", name: String, time: Int64 = 0, _ content: String?
    ) {
        buffer += "<testcase classname=\"\(xmlText(list))\" name=\"\(xmlText(name))\"".utf8
        buffer += " time=\"\(secondsText(milliseconds: max(0, time)))\"".utf8
        buffer += (content.map { ">\($0)</testcase>\n" } ?? "/>\n").utf8
    }

    private mutating func flush() {
        defer { buffer.removeAll(keepingCapacity: true) }
        guard failure == nil else { return }
        do {
            try file.write(buffer)
        } catch {
            failure = error
        }
    }

    private func head(_ summary: RunSummary) -> [UInt8] {
        let errors = summary.fatalMessage == nil ? 0 : 1
        let counts =
            "tests=\"\(passing + failures + skipped + errors)\" failures=\"\(failures)\" "
            + "errors=\"\(errors)\""
        let elapsed = max(0, summary.elapsed.wholeMilliseconds)
        let time = "time=\"\(secondsText(milliseconds: elapsed))\""
        // In UTC, without the Z that some schemas refuse.
        let start = summary.startedAt.description.prefix { $0 != "Z" }
        return JUnitWriter.padded(
            """
            <?xml version="1.0" encoding="UTF-8"?>
            <testsuites name="prefetch" \(counts) \(time)>
            <testsuite name="\(name)" \(counts) skipped="\(skipped)" \(time) timestamp="\(start)">
            """, name: name)
    }

    /// Returns the head with spaces up to a size that all counts fit in.
    private static func padded(_ head: String, name: String) -> [UInt8] {
        let size = JUnitWriter.headBytes + name.utf8.count
        var bytes = Array(head.utf8)
        precondition(bytes.count < size, "the counts need more space than is reserved")
        bytes += [UInt8](repeating: UInt8(ascii: " "), count: size - 1 - bytes.count)
        return bytes + [UInt8(ascii: "\n")]
    }
}

/// Escapes a text for an attribute or the content of an element in XML 1.0.
///
/// XML also forbids U+FFFE and U+FFFF, which become U+FFFD.
package func xmlText(_ text: String) -> String {
    var result = ""
    for scalar in printable(text, shortensData: false).unicodeScalars {
        switch scalar {
        case "&": result += "&amp;"
        case "<": result += "&lt;"
        case ">": result += "&gt;"
        case "\"": result += "&quot;"
        case "\u{FFFE}", "\u{FFFF}": result += "\u{FFFD}"
        default: result.unicodeScalars.append(scalar)
        }
    }
    return result
}
