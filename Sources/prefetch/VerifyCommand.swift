import ArgumentParser
import CacheStorage
import Glibc
import Pipeline
import PrefetchModel
import Reporting

/// `prefetch verify`
struct VerifyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify",
        abstract: "Compare the cache's files with their digests and rows.",
        discussion: """
            Reads the whole database and every content file, and prints a line for each thing that is not \
            as it should be: files that are missing, damaged or not what their rows say, files that no row \
            names, rows that contradict each other. It reads beside a run.

            With --repair what is wrong is mended: rows of bad files go with them, so that the next run \
            downloads their images again; files that no row names are removed; what is derived is made \
            anew. A database that is damaged itself is salvaged by the next run.

            Exit status: 0 nothing is wrong, 1 something was found, mended or not, 2 the cache is missing \
            or cannot be read, 64 wrong usage, 75 a run holds the cache (--repair).

            Examples:
              prefetch verify
              prefetch verify --sample 5% -q        # in cron, in between
              prefetch verify --repair; prefetch images.txt
            """)

    @Flag(help: "Mend what is found.")
    var repair = false

    @Option(
        help: ArgumentHelp(
            "Read only this share of the files, chosen by chance; of all others the sizes are compared.",
            valueName: "p%"))
    var sample = ShareArgument(1)

    @Flag(help: "Print JSON Lines: an object for each finding, and a summary.")
    var json = false

    @Flag(name: .shortAndLong, help: "Print only what is wrong.")
    var quiet = false

    @OptionGroup var options: ChangeOptions

    func run() throws {
        var lines = LineWriter(OutputFile(borrowing: STDOUT_FILENO, name: "standard output"))
        let start = ContinuousClock.now
        let totals: CacheVerification.Totals
        if repair {
            totals = try options.change(missingStatus: 2) { cache in
                let totals = try verify(
                    CacheVerification(
                        repairing: cache, sample: sample.share, workers: Processors.available),
                    since: start, &lines)
                if !totals.isDatabaseDamaged { try cache.endKeepingOrphans() }
                return totals
            }
        } else {
            let catalog = try options.cache.catalog()
            do {
                totals = try verify(
                    CacheVerification(
                        reading: catalog, sample: sample.share, workers: Processors.available),
                    since: start, &lines)
            } catch let error as StorageError {
                throw CommandFailure(error)
            }
        }
        let elapsed = ContinuousClock.now - start
        try writing {
            if json { try lines.write(JSONObject(totals, elapsed: elapsed)) }
            try lines.finish()
        }
        if !quiet, !json { StandardError.write("prefetch: \(text(totals, elapsed: elapsed))") }
        if totals.findings > 0 { throw CommandFailure(exitStatus: 1, message: "") }
    }

    private func verify(
        _ verification: CacheVerification, since start: ContinuousClock.Instant,
        _ lines: inout LineWriter
    ) throws -> CacheVerification.Totals {
        var line = ProgressText(isWanted: !quiet && StandardError.isCapableTerminal)
        defer { line.clear() }
        var failure: (any Error)?
        let totals = try verification.run { event in
            guard failure == nil else { return }
            switch event {
            case .finding(let finding):
                line.clear()
                do {
                    try writing {
                        if json {
                            try lines.write(JSONObject(finding))
                        } else {
                            try lines.write(line: VerifyCommand.text(finding))
                        }
                        try lines.flush()
                    }
                } catch {
                    failure = error
                }
            case .progress(let totals):
                let share = 100 * totals.folders / CacheInspection.folders.count
                let speed = rate(totals.bytes, .now - start)
                line.show(
                    "prefetch: \(share) %: \(totals.files) files, \(ByteCount(totals.bytes)), \(speed)"
                )
            }
        }
        if let failure { throw failure }
        return totals
    }

    // MARK: Words

    /// `content/ab/….jpg: damaged: its bytes are not … (https://example.com/a.jpg): mended`
    private static func text(_ finding: CacheVerification.Finding) -> String {
        var text = finding.path.map { "\($0): " } ?? ""
        text += "\(finding.kind.rawValue): \(finding.message)"
        if let key = finding.keys.first {
            let others = finding.keys.count - 1
            text += " (\(RedactedURL(key))\(others > 0 ? " and \(others) more" : ""))"
        }
        return printable(text + (finding.isMended ? ": mended" : ""))
    }

    /// `3000 files, 180.2 MiB, in 0.4 s (450 MiB/s): nothing is wrong`
    private func text(_ totals: CacheVerification.Totals, elapsed: Duration) -> String {
        let read = totals.filesRead == totals.files ? "" : " (\(totals.filesRead) read)"
        let verdict =
            switch (totals.findings, totals.findings - totals.mended) {
            case (0, _): "nothing is wrong"
            case (let all, 0): "\(all) found and mended; the next run downloads what is gone"
            case (let all, let left) where left == all:
                "\(all) found" + (repair ? ", which cannot be mended" : "; --repair mends them")
            case (let all, let left): "\(all) found, \(left) of which cannot be mended"
            }
        return """
            \(totals.files) files\(read), \(ByteCount(totals.bytes)), in \(durationText(elapsed)) \
            (\(rate(totals.bytes, elapsed))): \(verdict)
            """
    }

    private func rate(_ bytes: Int, _ elapsed: Duration) -> String {
        let seconds = elapsed / .seconds(1)
        return "\(ByteCount(seconds > 0 ? Int(Double(bytes) / seconds) : 0))/s"
    }
}

extension JSONObject {
    fileprivate init(_ finding: CacheVerification.Finding) {
        self.init()
        add("type", "finding")
        add("kind", finding.kind.rawValue)
        add("path", finding.path)
        add("keys", finding.keys.map { RedactedURL($0).description })
        add("message", finding.message)
        add("mended", finding.isMended)
    }

    fileprivate init(_ totals: CacheVerification.Totals, elapsed: Duration) {
        self.init()
        add("type", "summary")
        add("files", totals.files)
        add("files_read", totals.filesRead)
        add("bytes_read", totals.bytes)
        add("findings", totals.findings)
        add("mended", totals.mended)
        add("elapsed_ms", elapsed)
    }
}
