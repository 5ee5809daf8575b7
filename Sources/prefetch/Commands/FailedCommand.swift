import ArgumentParser
import CacheStorage
import Pipeline
import PrefetchModel
import Reporting

struct FailedCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "failed",
        abstract: "Show and clear failed URLs.",
        discussion: """
            A failed URL is remembered until it succeeds. A URL that is unlikely to recover is \
            blacklisted: runs skip it until its next try is due. The next run retries a failure that \
            was cleared.

            Exit status: 0 done, 1 a URL is not among the failures, 2 the cache is missing (1 for rm \
            and clear) or cannot be used, 64 wrong usage, 75 another process holds the cache.

            Examples:
              prefetch failed list --blacklisted
              prefetch failed clear --host example.com
            """,
        subcommands: [ListFailures.self, RemoveFailures.self, ClearFailures.self])

    struct ListFailures: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "list",
            abstract: "List the URLs that failed.",
            discussion: """
                One line per failure, sorted by cache key: blacklisted, retried or excluded, next try \
                (`now` or a time), reason with the HTTP status, failed runs in a row, attempts, time of the last \
                failure, URL, message. Secrets in URLs are masked, except with --urls.

                On a terminal the columns are aligned under a header; elsewhere they are tab-separated.

                Examples:
                  prefetch failed list --blacklisted --status 404
                  prefetch failed list --urls --host example.com | prefetch run - --retry-failed --allow-empty
                """)

        @OptionGroup var cache: CacheOptions

        @Flag(help: "Print JSON Lines.")
        var json = false

        @Flag(help: "Only URLs that are blacklisted now.")
        var blacklisted = false

        @Flag(
            help: """
                Print only the URLs, one per line, as a manifest for a run, with key= fields, without \
                exclusions. Secrets in query strings (signatures, tokens) are not masked.
                """)
        var urls = false

        @OptionGroup var filter: FailureFilter

        private static let columns: [PrintedColumn] = [
            .text("STATE"), .text("NEXT TRY"), .text("REASON"), .number("RUNS"),
            .number("ATTEMPTS"), .text("LAST FAILURE"), .text("URL"), .text("MESSAGE"),
        ]

        func validate() throws {
            if json, urls { throw ValidationError("--json and --urls cannot be combined") }
        }

        func run() throws {
            let catalog = try cache.catalog()
            let now = WallClock.now()
            var table = ColumnWriter(ListFailures.columns)
            let cooling = try catalog.coolingTimes(at: now)
            try catalog.forEachFailure { record in
                guard filter.includes(record, at: now),
                    !blacklisted || record.state(at: now) == .blacklisted,
                    // A run without the filter would store the images that an earlier run excluded.
                    !urls || filter.reason != nil || !record.reason.isExclusion
                else {
                    return
                }
                if json {
                    try table.write(JSONObject(record, at: now, cooling: cooling))
                } else if urls {
                    let key = record.key == record.url ? "" : " key=\(record.key)"
                    try table.write(line: printable(record.url + key, shortensData: false))
                } else {
                    try table.write(row: cells(record, at: now, cooling: cooling))
                }
            }
            try table.finish()
        }

        private func cells(
            _ record: FailureRecord, at now: Timestamp, cooling: [String: Timestamp]
        ) -> [String] {
            let nextTry = record.nextTry(at: now, cooling: cooling)
            let status = record.httpStatus.map { " \($0)" } ?? ""
            return [
                record.state(at: now).rawValue,
                nextTry?.description ?? "now",
                record.reason.rawValue + (record.reason == .httpStatus ? status : ""),
                "\(record.streak.runsInARow)",
                "\(record.streak.attempts)",
                record.streak.lastFailedAt.description,
                RedactedURL(record.url).description,
                printable(redacted(record.message)),
            ]
        }
    }

    struct RemoveFailures: SearchingCommand {
        static let configuration = CommandConfiguration(
            commandName: "rm",
            abstract: "Clear the failures of these URLs.",
            discussion: """
                Exit status 1 if a URL is not among the failures; the others are cleared anyway.

                Example:
                  prefetch failed rm https://example.com/gone.png
                """)

        @Argument(help: .value("url", "URLs, or their cache keys."))
        var images: [ImageName]

        @OptionGroup var keys: Flags<KeyFlags>
        @OptionGroup var options: ChangeOptions

        func run() throws {
            try options.change { cache in
                var missing: [String] = []
                for name in images.map({ $0.leavingOut(keys) }) {
                    let isRemoved = try name.find { key in
                        try cache.failures.remove(key: key) ? true : nil
                    }
                    if try isRemoved == nil
                        && name.url.map(cache.failures.remove(url:)) != true
                    {
                        missing.append(name.shown)
                    }
                }
                guard missing.isEmpty else {
                    throw UserError(
                        .incomplete, "\(missing.joined(separator: ", ")): not among the failures")
                }
            }
        }
    }

    struct ClearFailures: SearchingCommand {
        static let configuration = CommandConfiguration(
            commandName: "clear",
            abstract: "Clear all failures, or the failures with a reason or of a host.",
            discussion: """
                Failures must match all flags that are given.

                Examples:
                  prefetch failed clear --reason http-status --host example.com
                  prefetch failed clear
                """)

        @OptionGroup var filter: FailureFilter
        @OptionGroup var options: ChangeOptions

        func run() throws {
            let now = WallClock.now()
            let (exclusions, failures) = try options.change { cache in
                let exclusions = try cache.failures.removeAll {
                    filter.includes($0, at: now) && $0.reason.isExclusion
                }
                let failures =
                    filter.includesAll
                    ? try cache.failures.removeAll()
                    : try cache.failures.removeAll { filter.includes($0, at: now) }
                return (exclusions, failures)
            }
            let others = exclusions == 0 ? "" : ", \(counted(exclusions, "exclusion"))"
            StandardError.write("prefetch: \(counted(failures, "failure"))\(others) removed")
        }
    }
}

extension CacheCatalog {
    /// The ends of hosts' cool-down times, by host name.
    func coolingTimes(at now: Timestamp) throws(StorageError) -> [String: Timestamp] {
        Dictionary(
            try coolingHosts(at: now).map { ($0.host, $0.until) }, uniquingKeysWith: { $1 })
    }
}

extension FailureRecord {
    fileprivate enum FailureStanding: String {
        case blacklisted, retried, excluded
    }

    fileprivate func state(at now: Timestamp) -> FailureStanding {
        if reason.isExclusion { return .excluded }
        return isBlacklisted(at: now) ? .blacklisted : .retried
    }

    /// `failed with HTTP 404 at 2026-11-21T05:37:16Z`
    var account: String {
        "\(reason.isExclusion ? "excluded as" : "failed with") \(cause) at \(streak.lastFailedAt)"
    }

    /// The earliest time of the next try: after the end of the blacklisting and of the host's
    /// cool-down time. Nil for the next run.
    func nextTry(at now: Timestamp, cooling: [String: Timestamp]) -> Timestamp? {
        [blacklistEnd(at: now), cooling[host]].compactMap(\.self).max()
    }

    /// The end of the blacklisting; nil if the URL isn't blacklisted.
    func blacklistEnd(at now: Timestamp) -> Timestamp? {
        isBlacklisted(at: now) ? blacklistedUntil : nil
    }
}

extension JSONObject {
    /// A failure with the columns of the table. URLs are masked as in the report.
    fileprivate init(_ record: FailureRecord, at now: Timestamp, cooling: [String: Timestamp]) {
        self.init()
        add("state", record.state(at: now).rawValue)
        add("next_try_at", record.nextTry(at: now, cooling: cooling))
        add("key", RedactedURL(record.key).description)
        add("url", RedactedURL(record.url).description)
        add("host", record.host)
        add("reason", record.reason.rawValue)
        add("http_status", record.httpStatus)
        add("curl_code", record.curlCode)
        add("message", redacted(record.message))
        add("attempts", record.streak.attempts)
        add("class", record.streak.kind.rawValue)
        add("runs_in_a_row", record.streak.runsInARow)
        add("first_failed_at", record.streak.firstFailedAt)
        add("last_failed_at", record.streak.lastFailedAt)
        add("blacklisted_until", record.blacklistedUntil)
    }
}
