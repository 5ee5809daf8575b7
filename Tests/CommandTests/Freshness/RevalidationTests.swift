import Foundation
import TestSupport
import Testing

/// The effects of a 304, and the cases in which one would be useless.
@Suite(.timeLimit(.minutes(15)))
struct RevalidationTests {
    private static let day = "Tue, 02 Jan 2024 03:04:05 GMT"
    private static let picture = Fixtures.png(seed: 1)
    /// An image in three runs. The origin sends the responses in order, and repeats the last one.
    private struct Exchange: Sendable {
        let name: String
        var first: [(name: String, value: String)] = []
        /// Responses to later requests, of the first picture and another one.
        let later: @Sendable ([UInt8], [UInt8]) -> [Response]
        let verdicts: [String]
        /// The validators of each request: `If-None-Match` and `If-Modified-Since`.
        let sent: [(tag: String?, date: String?)]
        /// Whether the first picture is stored in the end, and not the other one.
        var keepsFirst = true
    }

    private static let hour = ("Cache-Control", "max-age=3600")
    private static let asBefore = ["downloaded", "revalidated", "fresh"]
    private static let nextDay = "Wed, 03 Jan 2024 03:04:05 GMT"
    private static let v1 = "\"v1\""
    private static let v2 = "\"v2\""
    private static let none: (tag: String?, date: String?) = (nil, nil)

    private static func tag(_ tag: String) -> (tag: String?, date: String?) { (tag, nil) }
    private static func date(_ date: String) -> (tag: String?, date: String?) { (nil, date) }

    /// Validators are returned as they were sent.
    private static let validators: [Exchange] =
        [v1, "W/\"v1\"", "unquoted-v1", "\"a b,c \\ d\"", "\"\u{FC}\u{20AC}\""].map { text in
            Exchange(
                name: "ETag \(text)", first: [("ETag", text)],
                later: { _, _ in [.notModified(hour)] }, verdicts: asBefore,
                sent: [none, tag(text)])
        }
        + [day, "Tuesday, 02-Jan-24 03:04:05 GMT"].map { text in
            Exchange(
                name: "Last-Modified \(text)", first: [("Last-Modified", text)],
                later: { _, _ in [.notModified(hour)] }, verdicts: asBefore,
                sent: [none, date(text)])
        }

    /// A tag that cannot be sent is dropped.
    private static let unsendable: [Exchange] = [
        "\"" + String(repeating: "x", count: 65_536) + "\"", "\"a\u{1}b\"", "\"a\u{7F}b\"", "",
        "*", "\"a\", \"b\"",
    ].map { text in
        Exchange(
            name: "unsendable tag \(text.prefix(9))",
            first: [("ETag", text), ("Last-Modified", day)],
            later: { _, _ in [.notModified] },
            verdicts: ["downloaded", "revalidated", "revalidated"],
            sent: [none, date(day), date(day)])
    }

    /// RFC 9111 §4.3.4: fields of the 304 replace the stored ones.
    private static let updates = [
        Exchange(
            name: "both validators", first: [("ETag", v1), ("Last-Modified", day)],
            later: { _, _ in [.notModified] },
            verdicts: ["downloaded", "revalidated", "revalidated"],
            sent: [none, (v1, day), (v1, day)]),
        Exchange(
            name: "a tag in the 304", first: [("Last-Modified", day)],
            later: { _, _ in
                [.notModified(("Last-Modified", day), ("ETag", v2)), .notModified]
            }, verdicts: ["downloaded", "revalidated", "revalidated"],
            sent: [none, date(day), (v2, day)]),
        Exchange(
            name: "a strong tag in the 304", first: [("ETag", "W/\"v1\"")],
            later: { _, _ in [.notModified(("ETag", v1)), .notModified] },
            verdicts: ["downloaded", "revalidated", "revalidated"],
            sent: [none, tag("W/\"v1\""), tag(v1)]),
        Exchange(
            name: "another Cache-Control", first: [("Cache-Control", "no-cache"), ("ETag", v1)],
            later: { _, _ in [.notModified(("Cache-Control", "max-age=600"))] },
            verdicts: asBefore, sent: [none, tag(v1)]),
        Exchange(
            name: "another Expires",
            first: [("Cache-Control", "private"), ("Expires", "0"), ("ETag", v1)],
            later: { _, _ in [.notModified(("Expires", "Fri, 01 Jan 2100 00:00:00 GMT"))] },
            verdicts: asBefore, sent: [none, tag(v1)]),
    ]

    /// A 304 that refers to another response is requested again; one that nothing asked for fails.
    private static let mismatches = [
        Exchange(
            name: "a 304 with another ETag", first: [("ETag", v1)],
            later: { _, other in [.notModified(("ETag", v2)), .picture(other, ("ETag", v2))] },
            verdicts: ["downloaded", "downloaded", "downloaded"],
            sent: [none, tag(v1), none, tag(v2)], keepsFirst: false),
        Exchange(
            name: "a 304 with another Last-Modified", first: [("Last-Modified", day)],
            later: { _, other in
                [
                    .notModified(("Last-Modified", nextDay)),
                    .picture(other, ("Last-Modified", nextDay)),
                ]
            }, verdicts: ["downloaded", "downloaded", "downloaded"],
            sent: [none, date(day), none, date(nextDay)], keepsFirst: false),
        Exchange(
            name: "nothing but other 304s", first: [("ETag", v1)],
            later: { _, _ in [.notModified(("ETag", v2))] },
            verdicts: ["downloaded", "failed/http-status", "failed/http-status"],
            sent: [none, tag(v1), none, tag(v1), none]),
        Exchange(
            name: "a 304 without a validator", later: { _, _ in [.notModified] },
            verdicts: ["downloaded", "failed/http-status", "failed/http-status"],
            sent: [none, none, none]),
    ]

    /// Responses with a body, and one that fails in between.
    private static let bodies =
        [v1, v2].map { next in
            Exchange(
                name: "new bytes with the tag \(next)", first: [("ETag", v1)],
                later: { _, other in [.picture(other, ("ETag", next))] },
                verdicts: ["downloaded", "downloaded", "downloaded"],
                sent: [none, tag(v1), tag(next)], keepsFirst: false)
        } + [
            Exchange(
                name: "the same bytes", first: [("ETag", v1)],
                later: { same, _ in [.picture(same, ("ETag", v2)), .notModified] },
                verdicts: ["downloaded", "downloaded", "revalidated"],
                sent: [none, tag(v1), tag(v2)]),
            Exchange(
                name: "a failure in between", first: [("ETag", v1)],
                later: { _, other in [Response(500), .picture(other)] },
                verdicts: ["downloaded", "failed/http-status", "downloaded"],
                sent: [none, tag(v1), tag(v1)], keepsFirst: false),
            Exchange(
                name: "no-store that need not be understood",
                first: [("Cache-Control", "no-store, must-understand, max-age=60")],
                later: { _, _ in [.notFound] }, verdicts: ["downloaded", "fresh", "fresh"],
                sent: [none]),
        ]

    @Test func threeRunsOverEveryExchange() async throws {
        let exchanges =
            Self.validators + Self.unsendable + Self.updates + Self.mismatches + Self.bodies
        let pictures = exchanges.indices.map {
            (first: Fixtures.png(seed: 2 * $0), other: Fixtures.png(seed: 2 * $0 + 1))
        }
        try await withOrigin { origin in
            origin.serve("/never", .notModified(Self.hour))
            let urls = exchanges.indices.map { origin.url("/\($0)") } + [origin.url("/never")]
            for (index, exchange) in exchanges.enumerated() {
                var first = Response.picture(pictures[index].first)
                if exchange.first.contains(where: { $0.name == "Cache-Control" }) {
                    first.headers.removeAll { $0.name == "Cache-Control" }
                }
                first.headers += exchange.first
                origin.serve(
                    "/\(index)",
                    [first] + exchange.later(pictures[index].first, pictures[index].other))
            }
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let first = try await workspace.prefetch(urls.map { "\($0) attr.note=kept" })
                let paths = exchanges.indices.map { first.report[line: $0 + 1]?.path }
                let before = try paths.map { try workspace.identity(of: #require($0)) }
                let second = try await workspace.prefetch(urls)
                #expect(second.result.status == 1)
                #expect(
                    try await workspace.query(
                        """
                        SELECT count(*), sum(validated_at > fetched_at AND expires_at > validated_at)
                        FROM resource WHERE url IN ('\(urls[..<7].joined(separator: "', '"))')
                        """) == [["7", "7"]])
                for (index, exchange) in exchanges.enumerated() {
                    let entry = try #require(second.report[line: index + 1])
                    if entry.verdict == "revalidated" {
                        #expect(entry.httpStatus == 304 && entry.bytesReceived == 0, "\(entry)")
                        #expect(entry.decodeMilliseconds == nil && entry.path == paths[index])
                    } else if entry.verdict == "downloaded" {
                        let isNew = !exchange.keepsFirst
                        #expect((entry.decodeMilliseconds != nil) == isNew, "\(exchange.name)")
                        #expect((entry.path != paths[index]) == isNew, "\(exchange.name)")
                        let body = isNew ? pictures[index].other : pictures[index].first
                        #expect(entry.bytesReceived == body.count, "\(exchange.name)")
                    }
                }
                let third = try await workspace.prefetch(urls)
                #expect(try await workspace.query("SELECT count(*) FROM failure") == [["3"]])
                let verdicts = [first, second, third].map(\.report.verdicts)
                let requests = Dictionary(grouping: origin.requests, by: \.path)
                var sources: [String: [UInt8]] = [:]
                for (index, exchange) in exchanges.enumerated() {
                    #expect(
                        verdicts.map { $0[index] } == exchange.verdicts,
                        "\(exchange.name): \(third.result)")
                    let sent = requests["/\(index)"] ?? []
                    #expect(
                        sent.map { $0.header("If-None-Match") } == exchange.sent.map(\.tag),
                        "\(exchange.name)")
                    #expect(
                        sent.map { $0.header("If-Modified-Since") } == exchange.sent.map(\.date),
                        "\(exchange.name)")
                    if exchange.verdicts == Self.asBefore {
                        #expect(
                            third.report[line: index + 1]?.expiresAt
                                == second.report[line: index + 1]?.expiresAt)
                    }
                    let path = try #require(paths[index])
                    if exchange.keepsFirst {
                        #expect(try workspace.identity(of: path) == before[index])
                    } else {
                        #expect(throws: (any Error).self) { try workspace.bytes(of: path) }
                    }
                    sources[urls[index]] =
                        exchange.keepsFirst ? pictures[index].first : pictures[index].other
                }
                #expect(verdicts.allSatisfy { $0.last == "failed/http-status" }, "never an image")
                #expect(try await workspace.judge(sources: sources) == exchanges.count)
                #expect(
                    try await workspace.query(
                        "SELECT count(*), hex(value) FROM attribute WHERE name = 'note' GROUP BY 2")
                        == [["\(exchanges.count)", "6B657074"]])
                let refused = try #require(
                    exchanges.firstIndex { $0.name == "nothing but other 304s" })
                let get = try await workspace.run("get", "--stale", urls[refused])
                #expect(get.status == 0, "\(get)")
            }
        }
    }

    @Test func missingOrTruncatedFileIsRequestedUnconditionally() async throws {
        try await withOrigin { origin in
            let paths = ["/gone", "/cut"]
            for (index, path) in paths.enumerated() {
                origin.serve(path, .picture(Fixtures.png(seed: index), ("ETag", "\"\(index)\"")))
            }
            try await withWorkspace { workspace in
                let lines = paths.map(origin.url)
                let first = try await workspace.prefetch(lines)
                let files = try lines.indices.map {
                    try #require(first.report[line: $0 + 1]?.path)
                }
                try workspace.removeFile(files[0])
                let whole = try workspace.bytes(of: files[1])
                try Data(whole.dropLast()).write(
                    to: URL(filePath: "\(workspace.cache)/\(files[1])"))
                let second = try await workspace.prefetch(lines)
                #expect(second.report.verdicts == ["downloaded", "downloaded"])
                #expect(origin.requests.count == 4, "\(second.result)")
                #expect(origin.requests.allSatisfy { $0.header("If-None-Match") == nil })
                #expect(try workspace.bytes(of: files[1]) == whole)
            }
        }
    }

    @Test func fileLostDuringValidationIsFetchedInTheSameRun() async throws {
        try await withOrigin { origin in
            let gate = Gate()
            let url = origin.url("/a.png")
            let picture = Response.picture(RevalidationTests.picture, ("ETag", "\"v1\""))
            origin.serve("/a.png", picture, .notModified(gate: gate), picture)
            try await withWorkspace(without: [.stalls]) { workspace in
                let first = try await workspace.prefetch([url])
                let path = try #require(first.report.entries.first?.path)
                let running = try workspace.prefetchCommand([url]).start()
                try await origin.wait(for: "the conditional request") { $0.requests.count == 2 }
                try workspace.removeFile(path)
                gate.open()
                let second = try workspace.finish(await running.wait(), entries: 1)
                #expect(second.report.verdicts == ["downloaded"], "\(second.result)")
                #expect(
                    origin.requests.map { $0.header("If-None-Match") } == [nil, "\"v1\"", nil])
                #expect(try await workspace.judge(sources: [url: RevalidationTests.picture]) == 1)
            }
        }
    }
}
