import PrefetchModel

/// The summary of a run in GitHub's Markdown: a table of outcomes and one of failures by cause.
struct StepSummary {
    let text: String

    /// GitHub refuses summaries of more than 1 MiB; escapes have up to six bytes.
    private static let longestCell = 1000

    init(_ summary: RunSummary, _ groups: [FailureGroups.CauseGroup]) {
        let counters = summary.counters
        var lines = [
            "### prefetch: \(SummaryText.entries(counters.entriesRead)) in "
                + "\(durationText(summary.elapsed)), exit status \(summary.exitStatus)", "",
        ]
        if let message = summary.fatalMessage {
            lines += [StepSummary.cell(redacted(message)), ""]
        }
        lines += ["| outcome | entries |", "|---|---:|"]
        lines += Outcome.allCases.filter { counters[$0] > 0 }.map {
            "| \($0.rawValue) | \(counters[$0]) |"
        }
        if !groups.isEmpty {
            lines += ["", "| failures | reason | host | first |", "|---:|---|---|---|"]
            lines += groups.map { group in
                let status = group.cause.httpStatus.map { " \($0)" } ?? ""
                let host =
                    switch group.cause.place {
                    case .host(let host): RedactedURL(host).description
                    case .elsewhere: "other hosts"
                    case .here: ""
                    }
                let first = group.sample.entry + (group.sample.message.map { ": \($0)" } ?? "")
                return "| \(group.count) | \(group.cause.reason.rawValue)\(status) | "
                    + "\(StepSummary.cell(host)) | \(StepSummary.cell(first)) |"
            }
            let others = counters[.failed] - groups.reduce(0) { $0 + $1.count }
            if others > 0 { lines += ["", "and \(others) more"] }
        }
        self.text = lines.joined(separator: "\n") + "\n\n"
    }

    /// Escapes text of lists and servers: a character reference never begins markup, a link or
    /// another cell.
    static func cell(_ text: String) -> String {
        var result = ""
        for scalar in printable(text).unicodeScalars.prefix(longestCell) {
            switch scalar {
            case "a"..."z", "A"..."Z", "0"..."9", " ", "-", "/", ",":
                result.unicodeScalars.append(scalar)
            default:
                if scalar.isASCII {
                    result += "&#\(scalar.value);"
                } else {
                    result.unicodeScalars.append(scalar)
                }
            }
        }
        return result
    }
}
