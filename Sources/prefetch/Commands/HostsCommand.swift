import ArgumentParser
import CacheStorage
import PrefetchModel
import Reporting
import Upkeep

struct HostsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "hosts",
        abstract: "Show and clear the state of hosts.",
        discussion: """
            Runs remember the pace that each host accepted, and which hosts failed or requested a \
            pause. The next run begins from there. Without a subcommand, `prefetch hosts` lists them.

            Exit status: 0 done, 1 a host is unknown, 2 the cache is missing (1 for clear) or cannot \
            be used, 64 wrong usage, 75 another process holds the cache.

            Examples:
              prefetch hosts
              prefetch hosts clear example.com
            """,
        subcommands: [ListHosts.self, ClearHosts.self], defaultSubcommand: ListHosts.self)

    struct ListHosts: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "list",
            abstract: "List the state of hosts.",
            discussion: """
                One line per host, sorted by name: state, next request (`now` or a time), concurrent \
                transfers and requests per second that the next run begins with (`-` for a new \
                host), what limited them (`settings`, `latency` or `refusals`), failed \
                connections since the last response, failed URLs, blacklisted URLs, time of the last \
                update (`-` if only URLs failed), and scheme, host and port.

                A host is `cooling` if runs send no requests before that time, `limited` if it has \
                refused requests for their pace, `failing` if its last connections failed, and \
                `normal` otherwise.

                On a terminal the columns are aligned under a header; elsewhere they are tab-separated.

                Examples:
                  prefetch hosts list
                  prefetch hosts list --json | jq -r 'select(.state == "cooling") | .host'
                """)

        @OptionGroup var cache: CacheOptions

        @Flag(help: "Print JSON Lines.")
        var json = false

        private static let columns: [PrintedColumn] = [
            .text("STATE"), .text("NEXT REQUEST"), .number("AT ONCE"), .number("PER SECOND"),
            .text("LIMITED BY"), .number("FAILURES"),
            .number("FAILED URLS"), .number("BLACKLISTED"), .text("UPDATED"), .text("HOST"),
        ]

        func run() throws {
            let catalog = try cache.catalog()
            let now = WallClock.now()
            var table = ColumnWriter(ListHosts.columns)
            try catalog.forEachHost(at: now) { host in
                if json {
                    try table.write(JSONObject(host, at: now))
                } else {
                    try table.write(row: cells(host, at: now))
                }
            }
            try table.finish()
        }

        private func cells(_ host: CacheCatalog.StoredHost, at now: Timestamp) -> [String] {
            [
                host.standing(at: now).rawValue,
                host.nextRequest(at: now)?.description ?? "now",
                host.state?.concurrency.map(String.init) ?? "-",
                host.requestsPerSecond.map { decimal($0, places: 1) } ?? "-",
                host.state?.limitedBy?.rawValue ?? "-",
                "\(host.state?.failuresInARow ?? 0)",
                "\(host.failures)",
                "\(host.blacklisted)",
                host.state?.updatedAt.description ?? "-",
                printable(host.name),
            ]
        }
    }

    struct ClearHosts: SearchingCommand {
        static let configuration = CommandConfiguration(
            commandName: "clear",
            abstract: "Clear the state of all hosts, or of these.",
            discussion: """
                The next run treats them like new hosts. Failed URLs are kept; \
                `prefetch failed clear --host` clears them.

                Exit status 1 if a host is unknown; the others are cleared anyway.

                Examples:
                  prefetch hosts clear example.com https://cdn.example.com:8443
                  prefetch hosts clear
                """)

        @Argument(
            help: .value(
                "host", "Hosts: example.com (any port), example.com:8080 or https://example.com."),
            completion: .storedHosts)
        var hosts: [HostName] = []

        @OptionGroup var options: ChangeOptions

        func run() throws {
            let (count, unknown) = try options.change { cache in
                hosts.isEmpty
                    ? (try cache.hosts.removeAll(), []) : try cache.hosts.removeAll(named: hosts)
            }
            StandardError.write("prefetch: \(counted(count, "host")) cleared")
            guard unknown.isEmpty else {
                for host in unknown {
                    StandardError.write("prefetch: \(host.text): unknown host")
                }
                throw UserError(.incomplete, "")
            }
        }
    }
}

private enum HostStanding: String {
    case cooling, limited, failing, normal
}

extension CacheCatalog.StoredHost {
    /// The end of the host's cool-down time; nil if requests may start now.
    fileprivate func nextRequest(at now: Timestamp) -> Timestamp? {
        state?.coolingUntil.flatMap { $0 > now ? $0 : nil }
    }

    /// Nil without a limit.
    fileprivate var requestsPerSecond: Double? { state?.interval.map { 1 / $0.secondsValue } }

    fileprivate func standing(at now: Timestamp) -> HostStanding {
        if nextRequest(at: now) != nil { return .cooling }
        if state?.isRefusing == true { return .limited }
        return state.map { $0.failuresInARow > 0 } ?? false ? .failing : .normal
    }
}

extension JSONObject {
    /// A host with the columns of the table.
    fileprivate init(_ host: CacheCatalog.StoredHost, at now: Timestamp) {
        self.init()
        add("host", host.name)
        add("state", host.standing(at: now).rawValue)
        add("next_request_at", host.nextRequest(at: now))
        add("concurrency", host.state?.concurrency)
        add("requests_per_second", host.requestsPerSecond)
        add("latency_ms", host.state?.latency)
        add("limited_by", host.state?.limitedBy?.rawValue)
        add("failures_in_a_row", host.state?.failuresInARow ?? 0)
        add("cooling_until", host.state?.coolingUntil)
        add("updated_at", host.state?.updatedAt)
        add("failed_urls", host.failures)
        add("blacklisted_urls", host.blacklisted)
    }
}
