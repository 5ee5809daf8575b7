import PrefetchModel

/// The results of a run for GitHub Actions: annotations for the first failures, a step summary and
/// outputs.
package struct GitHubActions: Sendable {
    /// GitHub shows ten annotations of a step; one has the count of the rest.
    static let mostAnnotations = 9

    /// The files of `$GITHUB_STEP_SUMMARY` and `$GITHUB_OUTPUT`; nil for none.
    private let summaryPath, outputPath: String?
    /// Whether known failures get no annotation.
    private let ignoresKnown: Bool
    private var failures: [EntryResult] = []
    private var count = 0

    package init(summaryPath: String?, outputPath: String?, ignoresKnown: Bool) {
        self.summaryPath = summaryPath
        self.outputPath = outputPath
        self.ignoresKnown = ignoresKnown
    }

    mutating func note(_ result: EntryResult) {
        let isKnown = result.isKnown || result.outcome == .blacklisted
        guard result.outcome == .failed || result.outcome == .blacklisted,
            !(ignoresKnown && isKnown)
        else { return }
        count += 1
        if failures.count < GitHubActions.mostAnnotations { failures.append(result) }
    }

    /// The commands for the annotations: errors if the run fails, else warnings.
    func annotations(_ summary: RunSummary) -> [String] {
        let level = summary.exitStatus == 0 ? "warning" : "error"
        var commands: [String] = []
        if let message = summary.fatalMessage {
            commands.append(
                WorkflowCommand.annotation(level, message: printable(redacted(message))))
        }
        let shown = failures.prefix(GitHubActions.mostAnnotations - commands.count)
        commands += shown.map { result in
            let isElsewhere =
                result.manifest == "-" || result.manifest.hasPrefix("http://")
                || result.manifest.hasPrefix("https://")
            let message = result.shownMessage.map { ": \($0)" } ?? ""
            return WorkflowCommand.annotation(
                level, file: isElsewhere ? nil : printable(result.manifest),
                line: isElsewhere ? nil : result.line, title: result.reason?.rawValue ?? "failed",
                message: printable(result.shownURL) + message)
        }
        let others = count - shown.count
        if others > 0 {
            commands.append(WorkflowCommand.annotation(level, message: "and \(others) more"))
        }
        return commands
    }

    /// Appends the step summary and the outputs to their files.
    ///
    /// - Returns: the problems, for messages.
    func append(_ summary: RunSummary, _ groups: [FailureGroups.CauseGroup]) -> [String] {
        let counters = summary.counters
        let failed = counters[.failed] + counters[.blacklisted]
        let outputs = "changed=\(counters.variantsMade)\nfailed=\(failed)\n"
        let files = [
            ("GITHUB_STEP_SUMMARY", summaryPath, StepSummary(summary, groups).text),
            ("GITHUB_OUTPUT", outputPath, outputs),
        ]
        return files.compactMap { variable, path, text -> String? in
            guard let path else { return nil }
            do {
                var file = try OutputFile(appendingTo: path)
                try file.write(Array(text.utf8))
                try file.close()
                return nil
            } catch {
                return "$\(variable): \(error)"
            }
        }
    }
}

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
                let sample = group.sample
                let first = sample.shownEntry + (sample.shownMessage.map { ": \($0)" } ?? "")
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
