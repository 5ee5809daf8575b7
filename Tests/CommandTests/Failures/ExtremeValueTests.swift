import Foundation
import TestSupport
import Testing

/// Extreme numbers in flags, files and response fields never crash the program.
@Suite(.timeLimit(.minutes(15)))
struct ExtremeValueTests {
    private static let numbers = [
        "0", "-1", "1", "2147483648", "4294967296", "4611686018427387904", "9223372036854774783",
        "9223372036854775807", "9223372036854775808", String(repeating: "9", count: 400), "nan",
        "inf", "1e400", "0.0000001", "",
    ]

    /// Flags that one run may combine, since none disables the others.
    private static let groups = [
        [
            "queue-capacity", "jobs", "host-concurrency", "retry", "max-redirects", "max-failures",
            "memory",
        ],
        ["max-filesize"], ["max-pixels", "retry-delay", "max-retry-after", "host-timeout"],
        ["quality", "max-stored-bytes", "max-decode-time"],
        ["connect-timeout"], ["stall-timeout", "timeout"],
        ["ahead", "ttl"], ["min-ttl"], ["max-ttl", "default-ttl"],
    ]

    private static func values(of flag: String) -> [String] {
        switch flag {
        case "max-filesize", "memory", "max-stored-bytes":
            numbers + ["8589934591GiB", "99999999999999999999GiB", "0.3"]
        case "queue-capacity", "jobs", "max-pixels", "host-concurrency", "retry", "max-redirects",
            "quality", "max-failures":
            numbers
        default: numbers + ["36500d", "99999999999d", "0.4ms"]
        }
    }

    /// The arguments of a flag that a run over an empty list accepts; each other value is wrong
    /// usage, with a message that names the flag.
    private static func accepted(
        _ flag: String, in workspace: Workspace
    ) async throws -> [String] {
        var accepted: [String] = []
        for value in values(of: flag) {
            let argument = "--\(flag)=\(value)"
            let result = try await workspace.command(["/dev/null", "--allow-empty", argument]).run()
            if result.status == 0 {
                accepted.append(argument)
            } else {
                #expect(result.status == 64, "\(result)")
                #expect(result.error.contains("--\(flag)"), "\(result)")
            }
        }
        return accepted
    }

    @Test(arguments: groups)
    func everyValueIsRefusedOrNeverCrashesARun(flags: [String]) async throws {
        try await withOrigin { origin in
            origin.serve("/a.png", .image(Fixtures.png()))
            try await withWorkspace { workspace in
                let manifest = try workspace.manifest([origin.url("/a.png")])
                var taken: [[String]] = []
                for flag in flags {
                    let accepted = try await ExtremeValueTests.accepted(flag, in: workspace)
                    #expect((1..<ExtremeValueTests.values(of: flag).count).contains(accepted.count))
                    taken.append(accepted)
                }
                for index in 0..<(taken.map(\.count).max() ?? 0) {
                    let arguments =
                        ["--refresh", "force", "--retry", "0"]
                        + taken.map { $0[index % $0.count] }
                    let result = try await workspace.command([manifest] + arguments).run()
                    #expect(result.signal == nil, "\(arguments): \(result)")
                    #expect([0, 1].contains(result.status), "\(arguments): \(result)")
                }
            }
        }
    }

    /// No count, size, duration or time of a row stops, delays or crashes a run or a merge.
    @Test(arguments: [Int64.min, -1, 0, 1, 1_000_000_000_000_000, .max])
    func everyNumberOfARowIsBounded(_ value: Int64) async throws {
        try await withOrigin { origin in
            let lines = origin.serveImages(3)
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                _ = try await workspace.prefetch(lines + [origin.url("/gone")], "--retry", "0")
                let now = Int64(Date().timeIntervalSince1970 * 1000)
                let host = origin.url("")
                try await workspace.runSQL(
                    """
                    INSERT OR REPLACE INTO host (host, concurrency, failures_in_a_row,
                        cooling_until, updated_at, interval_us, latency_us, limited_by)
                    VALUES ('\(host)', 2, 0, NULL, \(now), 1000, 1000, 'refusals');
                    """)
                try workspace.manifest([], name: "empty.txt")
                let columns = try await workspace.query(
                    """
                    SELECT m.name, c.name FROM sqlite_schema AS m, pragma_table_info(m.name) AS c
                    WHERE m.type = 'table' AND c.type = 'INTEGER'
                    """)
                #expect(columns.count > 60)
                for column in columns {
                    let (table, field) = (column[0] ?? "", column[1] ?? "")
                    let name = "\(table).\(field) = \(value)"
                    // Without a row that changes there is nothing new to run.
                    let changes = try await workspace.query(
                        "SELECT EXISTS (SELECT 1 FROM \(table) WHERE \(field) IS NOT \(value))")
                    guard changes == [["1"]] else { continue }
                    try FileManager.default.copyItem(
                        atPath: workspace.cache, toPath: workspace.folder + "/copy")
                    defer {
                        try? FileManager.default.removeItem(atPath: workspace.folder + "/copy")
                    }
                    // Some values violate a constraint.
                    try? await workspace.runSQL(
                        """
                        PRAGMA ignore_check_constraints = ON;
                        UPDATE \(table) SET \(field) = \(value);
                        """, of: "copy")
                    for arguments in [
                        ["merge", "merged", "copy", "-q"],
                        ["run", "manifest.txt", "--cache-dir", "merged", "--retry", "0", "-q"],
                        [
                            "run", "manifest.txt", "--cache-dir", "copy", "--refresh", "all",
                            "--retry", "0", "-q",
                        ],
                    ] {
                        var command = workspace.command(arguments)
                        command.timeLimit = .seconds(20)
                        let result = try await command.run()
                        #expect(result.signal == nil, "\(name): \(result)")
                        #expect([0, 1, 2].contains(result.status), "\(name): \(result)")
                    }
                    try? FileManager.default.removeItem(atPath: workspace.folder + "/merged")
                }
            }
        }
    }

    /// 100 bytes may announce the largest possible image.
    @Test func largestHeaderIsTooManyPixels() async throws {
        let most = 0x7FFF_FFFF
        try await withOrigin { origin in
            origin.serve("/a.png", .image(Fixtures.pngDeclaring(width: most, height: most)))
            let url = origin.url("/a.png")
            let recipes = [
                [], ["--encode", "jpeg"], ["--encode", "original"], ["--effort", "small"],
                ["--strip", "none", "--keep-larger"], ["--max-stored-bytes", "1"],
                ["--encode", "original", "--check", "structure"],
            ]
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                for recipe in recipes {
                    for pixels in ["4611686018427387904", "9223372036854775807"] {
                        let run = try await workspace.prefetch(
                            [url], ["--max-pixels", pixels, "--retry-failed"] + recipe)
                        #expect(run.report.verdicts == ["failed/too-many-pixels"], "\(run.result)")
                        #expect(run.result.status == 1)
                    }
                }
            }
        }
    }

    @Test func everyFieldNumberIsAcceptedOrIgnored() async throws {
        let numbers =
            ExtremeValueTests.numbers + [
                "-9223372036854775808", "-" + String(repeating: "9", count: 40),
            ]
        let dates = ["Thu, 01 Jan 1970 00:00:00 GMT", "Fri, 31 Dec 9999 23:59:59 GMT"]
        var fields: [[(name: String, value: String)]] = []
        for value in numbers + dates {
            for name in ["Age", "Expires", "Date", "Last-Modified", "Retry-After"] {
                fields.append([(name, value)])
                fields.append([
                    (name, value),
                    ("Age", "9223372036854775807"),
                    ("Date", "Fri, 31 Dec 9999 23:59:59 GMT"),
                ])
            }
            for name in ["max-age", "stale-while-revalidate"] {
                fields.append([
                    ("Cache-Control", "\(name)=\(value), max-age=1"),
                    ("Age", value),
                ])
            }
        }
        try await withOrigin { origin in
            let lines = fields.indices.map { index in
                var response = Response.image(Fixtures.png(seed: index))
                response.headers += fields[index]
                origin.serve("/\(index)", response)
                return origin.url("/\(index)")
            }
            for options in [
                [], ["--ttl", "36500d"], ["--min-ttl", "36500d", "--ahead", "36500d"],
            ] {
                try await withWorkspace(without: [.retries, .probes]) { workspace in
                    for _ in 0..<2 {
                        let run = try await workspace.prefetch(lines, options)
                        #expect(run.result.status == 0, "\(run.result)")
                    }
                    let list = try await workspace.run("list", "--json")
                    #expect(list.status == 0, "\(list)")
                }
            }
        }
    }
}
