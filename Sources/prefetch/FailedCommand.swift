import ArgumentParser
import CacheStorage
import Glibc
import Pipeline
import PrefetchModel
import Reporting

extension FailureReason: ExpressibleByArgument {}

/// `prefetch failed`
struct FailedCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "failed",
        abstract: "Show and forget what could not be fetched.",
        discussion: """
            Every URL that failed is remembered until it succeeds. One whose failure will not mend \
            by itself is blocked: a run does not ask for it until its next try is due. What is \
            forgotten is asked for in the next run.

            Exit status: 0 done, 1 a URL is not among the failures, 2 the cache is missing (1 when \
            it would be changed) or cannot be used, 75 another run holds it, 64 wrong usage.
            """,
        subcommands: [List.self, Remove.self, Clear.self])
}

extension FailedCommand {
    /// `prefetch failed list`
    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "list",
            abstract: "List the failures.",
            discussion: """
                One line a failure, ordered by key, with tabs between the columns: blocked or \
                retried, the next try (`now` or a time), reason with the HTTP status, runs in a row \
                that failed, attempts, time of the last failure, URL, message. Secrets in URLs are \
                masked.
                """)

        @OptionGroup var cache: CacheOptions

        @Flag(help: "Print JSON Lines.")
        var json = false

        @Flag(help: "Only those that are blocked now.")
        var blocked = false

        func run() throws {
            let catalog = try cache.catalog()
            let now = WallClock.now()
            var output = LineWriter(OutputFile(borrowing: STDOUT_FILENO, name: "standard output"))
            try writing {
                try catalog.forEachFailure { record in
                    guard !blocked || record.isBlocking(at: now) else { return }
                    if json {
                        try output.write(JSONObject(record, at: now))
                    } else {
                        try output.write(line: line(record, at: now))
                    }
                }
                try output.finish()
            }
        }

        private func line(_ record: FailureRecord, at now: Timestamp) -> String {
            let nextTry = record.nextTry(at: now)
            let status = record.httpStatus.map { " \($0)" } ?? ""
            return [
                nextTry == nil ? "retried" : "blocked",
                nextTry?.description ?? "now",
                record.reason.rawValue + (record.reason == .httpStatus ? status : ""),
                "\(record.runsInARow)",
                "\(record.attempts)",
                record.lastFailedAt.description,
                RedactedURL(record.url).description,
                printable(redacted(record.message)),
            ].joined(separator: "\t")
        }
    }

    /// `prefetch failed rm URL...`
    struct Remove: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "rm",
            abstract: "Forget the failures of URLs.",
            discussion: """
                Exit status 1 when one of them was not there; the others are removed all the same.
                """)

        @Argument(help: ArgumentHelp("URLs, or their cache keys.", valueName: "url"))
        var urls: [String]

        @OptionGroup var options: ChangeOptions

        func run() throws {
            try options.change { cache in
                var missing: [String] = []
                for url in urls {
                    let name = ImageName(url)
                    let isRemoved = try name.find { key in
                        try cache.failures.remove(key: key) ? true : nil
                    }
                    if isRemoved == nil { missing.append(name.shown) }
                }
                guard missing.isEmpty else {
                    throw CommandFailure(
                        exitStatus: 1,
                        message: "\(missing.joined(separator: ", ")): not among the failures")
                }
            }
        }
    }

    /// `prefetch failed clear`
    struct Clear: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "clear",
            abstract: "Forget all failures, or those of a reason or a host.",
            discussion: "With both --reason and --host, those that match both.")

        @Option(help: "Only failures of this reason.")
        var reason: FailureReason?

        @Option(
            help: ArgumentHelp(
                """
                Only failures of this host, like example.com (any port), example.com:8080 or \
                https://example.com.
                """, valueName: "host"))
        var host: String?

        @OptionGroup var options: ChangeOptions

        func run() throws {
            let count = try options.change { cache in
                guard reason != nil || host != nil else { return try cache.failures.removeAll() }
                return try cache.failures.removeAll(where: isWanted)
            }
            StandardError.write("prefetch: \(count) failure\(count == 1 ? "" : "s") removed")
        }

        private func isWanted(_ record: FailureRecord) -> Bool {
            if let reason, record.reason != reason { return false }
            guard let host = host?.lowercased() else { return true }
            return names(of: record.host.lowercased()).contains { $0 == host }
        }

        /// What a user may call a host that is stored as scheme, name and port.
        private func names(of origin: String) -> [Substring] {
            guard let separator = origin.firstRange(of: "://") else { return [origin[...]] }
            let authority = origin[separator.upperBound...]
            guard let colon = authority.lastIndex(of: ":"),
                authority[colon...].dropFirst().allSatisfy(\.isNumber)
            else { return [origin[...], authority] }
            return [origin[...], authority, authority[..<colon]]
        }
    }
}

extension FailureRecord {
    /// When a run asks for its URL again; nil for the next run, whenever it comes.
    func nextTry(at now: Timestamp) -> Timestamp? {
        isBlocking(at: now) ? blockedUntil : nil
    }
}

extension JSONObject {
    /// A failure with the columns of the table, and whether it blocks now. URLs are masked as in
    /// the report.
    fileprivate init(_ record: FailureRecord, at now: Timestamp) {
        self.init()
        let nextTry = record.nextTry(at: now)
        add("state", nextTry == nil ? "retried" : "blocked")
        add("next_try_at", nextTry)
        add("key", RedactedURL(record.key).description)
        add("url", RedactedURL(record.url).description)
        add("host", record.host)
        add("reason", record.reason.rawValue)
        add("http_status", record.httpStatus)
        add("curl_code", record.curlCode)
        add("message", redacted(record.message))
        add("attempts", record.attempts)
        add("class", record.kind.rawValue)
        add("runs_in_a_row", record.runsInARow)
        add("first_failed_at", record.firstFailedAt)
        add("last_failed_at", record.lastFailedAt)
        add("blocked_until", record.blockedUntil)
    }
}
