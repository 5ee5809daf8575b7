import FileOutput
import PrefetchModel

extension RunReporter {
    /// `prefetch: m.txt:12: URL: downloaded: jpeg 640x427, 79.3 KiB received, 68.5 KiB stored`.
    static func line(_ result: EntryResult) -> String {
        var details: [String] = []
        if let stored = result.stored {
            var text = stored.format.rawValue
            if let width = stored.knownWidth, let height = stored.knownHeight {
                text += " \(width)x\(height)"
            }
            details.append(stored.isDecoded ? text : "\(text) (not decoded)")
        }
        if result.bytesReceived > 0 {
            details.append("\(ByteCount(result.bytesReceived)) received")
        }
        if let stored = result.stored, result.outcome == .downloaded {
            details.append("\(stored.size) stored")
        }
        var text = "prefetch: \(result.manifest):\(result.line): \(result.shownURL): "
        text += result.outcome.rawValue
        if let reason = result.reason { text += ": \(reason.rawValue)" }
        if let message = result.message { text += ": \(redacted(message))" }
        if !details.isEmpty { text += ": \(details.joined(separator: ", "))" }
        return printable(text)
    }
}

extension RunReporter.Outputs {
    /// Writes a complete line above the progress line, in one system call.
    mutating func show(line: String) {
        let clear = shownProgress.isEmpty ? "" : ProgressLine.clearText
        show("\(clear)\(line)\n\(shownProgress)")
    }

    mutating func clearProgress() {
        guard !shownProgress.isEmpty else { return }
        shownProgress = ""
        show(ProgressLine.clearText)
    }

    mutating func show(_ text: String) {
        write { file throws(OutputError) in try file.write(Array(text.utf8)) }
    }

    /// GitHub reads the annotations from both streams, and standard output is for data.
    mutating func showAnnotations(_ summary: RunSummary) {
        guard let commands = actions?.annotations(summary), !commands.isEmpty else { return }
        let text = commands.joined(separator: "\n") + "\n"
        write { file throws(OutputError) in try file.write(commands: text) }
    }

    mutating func appendForActions(_ summary: RunSummary, showsProblems: Bool) {
        guard let actions else { return }
        let problems = actions.append(summary, self.summary.listedGroups(summary))
        guard showsProblems, !problems.isEmpty else { return }
        for problem in problems { show(line: "prefetch: \(problem)") }
        show(line: "hint: --ci none writes no files for GitHub Actions")
    }

    private mutating func write(
        _ body: (borrowing OutputFile) throws(OutputError) -> Void
    ) {
        guard diagnosticsError == nil else { return }
        do {
            try body(diagnostics)
        } catch {
            diagnosticsError = error
        }
    }
}
