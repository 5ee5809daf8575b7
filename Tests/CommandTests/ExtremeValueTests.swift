import TestSupport
import Testing

/// Numbers come from flags, files and fields of responses: none of them ends the program.
@Suite(.timeLimit(.minutes(15)))
struct ExtremeValueTests {
    private static let numbers = [
        "0", "-1", "1", "2147483648", "4294967296", "4611686018427387904", "9223372036854774783",
        "9223372036854775807", "9223372036854775808", String(repeating: "9", count: 400), "nan",
        "inf", "1e400", "0.0000001", "",
    ]

    private static let flags: [String: [String]] = {
        var flags: [String: [String]] = [:]
        for name in [
            "queue-capacity", "jobs", "max-pixels", "host-concurrency", "retry", "max-redirects",
            "quality", "max-failures",
        ] { flags[name] = numbers }
        for name in ["max-filesize", "memory", "max-stored-bytes"] {
            flags[name] = numbers + ["8589934591GiB", "99999999999999999999GiB", "0.3"]
        }
        for name in [
            "connect-timeout", "stall-timeout", "timeout", "max-decode-time", "retry-delay",
            "max-retry-after", "host-timeout", "ahead", "ttl", "min-ttl", "max-ttl", "default-ttl",
        ] { flags[name] = numbers + ["36500d", "99999999999d", "0.4ms"] }
        return flags
    }()

    @Test(arguments: flags.keys.sorted())
    func everyValueOfAFlagIsTakenOrRefused(flag: String) async throws {
        try await withOrigin { origin in
            origin.serve("/a.png", .image(Fixtures.png()))
            try await withWorkspace { workspace in
                let manifest = try workspace.manifest([origin.url("/a.png")])
                for value in ExtremeValueTests.flags[flag] ?? [] {
                    let result = try await workspace.command(
                        [manifest, "--\(flag)=\(value)"]
                    ).run()
                    #expect(result.signal == nil, "\(value): \(result)")
                    #expect([0, 1, 64].contains(result.status), "\(value): \(result)")
                    if result.status == 64 {
                        #expect(result.error.contains("--\(flag)"), "\(value): \(result)")
                    }
                }
            }
        }
    }

    /// 100 bytes may say that they are the largest image there can be.
    @Test func theLargestHeaderIsTooManyPixels() async throws {
        let most = 0x7FFF_FFFF
        try await withOrigin { origin in
            origin.serve("/a.png", .image(Fixtures.pngDeclaring(width: most, height: most)))
            let url = origin.url("/a.png")
            let recipes = [
                [], ["--encode", "jpeg"], ["--encode", "original"], ["--png-effort", "small"],
                ["--strip", "none", "--keep-larger"], ["--max-stored-bytes", "1"],
                ["--encode", "original", "--check", "structure"],
            ]
            for recipe in recipes {
                for pixels in ["4611686018427387904", "9223372036854775807"] {
                    try await withWorkspace { workspace in
                        let run = try await workspace.finish(
                            workspace.prefetchCommand([url], ["--max-pixels", pixels] + recipe)
                                .run(), entries: 1)
                        #expect(run.report.verdicts == ["failed/too-many-pixels"], "\(run.result)")
                        #expect(run.result.status == 1)
                    }
                }
            }
        }
    }

    @Test func everyNumberInAFieldIsTakenOrIgnored() async throws {
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
                try await withWorkspace { workspace in
                    for _ in 0..<2 {
                        let run = try await workspace.finish(
                            workspace.prefetchCommand(lines, options).run(), entries: lines.count)
                        #expect(run.result.status == 0, "\(run.result)")
                    }
                    let list = try await workspace.run("list", "--json")
                    #expect(list.status == 0, "\(list)")
                }
            }
        }
    }
}
