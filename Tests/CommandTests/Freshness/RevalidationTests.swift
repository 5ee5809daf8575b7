import Foundation
import TestSupport
import Testing

/// The effects of a 304, and the cases in which one would be useless.
@Suite(.timeLimit(.minutes(15)))
struct RevalidationTests {
    /// A validator as the origin sends it, and the request field that must return it.
    struct Validator: Sendable, CustomTestStringConvertible {
        let field: String
        let value: String
        let sentAs: String
        var testDescription: String { "\(field): \(value)" }

        static func tag(_ value: String) -> Validator {
            Validator(field: "ETag", value: value, sentAs: "If-None-Match")
        }

        static func date(_ value: String) -> Validator {
            Validator(field: "Last-Modified", value: value, sentAs: "If-Modified-Since")
        }
    }

    private static let day = "Tue, 02 Jan 2024 03:04:05 GMT"
    private static let picture = Fixtures.png(seed: 1)
    private static let other = Fixtures.png(seed: 2)

    @Test(arguments: [
        Validator.tag("\"v1\""), .tag("W/\"v1\""), .tag("unquoted-v1"), .tag("\"a b,c \\ d\""),
        .tag("\"\u{FC}\u{20AC}\""), .date(day), .date("Tuesday, 02-Jan-24 03:04:05 GMT"),
    ])
    func validationOnlyUpdatesDates(validator: Validator) async throws {
        try await withOrigin { origin in
            let url = origin.url("/a.png")
            origin.serve(
                "/a.png",
                .picture(RevalidationTests.picture, (validator.field, validator.value)),
                .notModified(("Cache-Control", "max-age=3600")))
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let first = try await workspace.prefetch([url])
                let path = try #require(first.report.entries.first?.path, "\(first.result)")
                let before = try workspace.identity(of: path)

                let second = try await workspace.prefetch([url])
                let entry = try #require(second.report.entries.first)
                #expect(entry.verdict == "revalidated", "\(second.result)")
                #expect(second.result.status == 0)
                #expect(entry.httpStatus == 304 && entry.bytesReceived == 0)
                #expect(entry.decodeMilliseconds == nil && entry.path == path)
                let request = origin.requests[1]
                #expect(request.header(validator.sentAs) == validator.value, "\(request)")
                #expect(try workspace.identity(of: path) == before)
                #expect(try await workspace.query("SELECT count(*) FROM failure") == [["0"]])

                let third = try await workspace.prefetch([url])
                #expect(third.report.verdicts == ["fresh"], "\(third.result)")
                #expect(third.report.entries.first?.expiresAt == entry.expiresAt)
                #expect(origin.requests.count == 2)
                let row = try await workspace.query(
                    "SELECT validated_at > fetched_at, expires_at > validated_at FROM resource")
                #expect(row == [["1", "1"]])
            }
        }
    }

    @Test func bothValidatorsAreSent() async throws {
        try await withOrigin { origin in
            origin.serve(
                "/a.png",
                .picture(
                    RevalidationTests.picture, ("ETag", "\"v1\""),
                    ("Last-Modified", RevalidationTests.day)), .notModified)
            try await withWorkspace { workspace in
                _ = try await workspace.prefetch([origin.url("/a.png")])
                let run = try await workspace.prefetch([origin.url("/a.png")])
                #expect(run.report.verdicts == ["revalidated"], "\(run.result)")
                #expect(origin.requests[1].header("If-None-Match") == "\"v1\"")
                #expect(origin.requests[1].header("If-Modified-Since") == RevalidationTests.day)
            }
        }
    }

    /// RFC 9111 §4.3.4: fields of the 304 replace the stored ones.
    @Test func validationUpdatesStoredFields() async throws {
        try await withOrigin { origin in
            origin.serve(
                "/tag",
                .picture(
                    RevalidationTests.picture, ("Last-Modified", RevalidationTests.day)),
                .notModified(("Last-Modified", RevalidationTests.day), ("ETag", "\"v2\"")),
                .notModified)
            origin.serve(
                "/strong", .picture(RevalidationTests.picture, ("ETag", "W/\"v1\"")),
                .notModified(("ETag", "\"v1\"")), .notModified)
            origin.serve(
                "/control",
                .picture(
                    RevalidationTests.picture, ("Cache-Control", "no-cache"), ("ETag", "\"v1\"")),
                .notModified(("Cache-Control", "max-age=600")))
            origin.serve(
                "/expires",
                .picture(
                    RevalidationTests.picture, ("Cache-Control", "private"), ("Expires", "0"),
                    ("ETag", "\"v1\"")),
                .notModified(("Expires", "Fri, 01 Jan 2100 00:00:00 GMT")))
            let paths = ["/tag", "/strong", "/control", "/expires"]
            try await withWorkspace { workspace in
                let lines = paths.map(origin.url)
                _ = try await workspace.prefetch(lines)
                let second = try await workspace.prefetch(lines)
                #expect(second.summary["revalidated"] == 4, "\(second.result)")
                let third = try await workspace.prefetch(lines)
                #expect(
                    third.report.verdicts == ["revalidated", "revalidated", "fresh", "fresh"],
                    "\(third.result)")
                func last(_ path: String) -> Origin.Request? {
                    origin.requests.last { $0.path == path }
                }
                #expect(last("/tag")?.header("If-None-Match") == "\"v2\"")
                #expect(last("/strong")?.header("If-None-Match") == "\"v1\"")
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

    /// RFC 9111 §4.3.4: such a 304 refers to another response.
    @Test(arguments: [
        (name: "ETag", value: "\"v2\""),
        (name: "Last-Modified", value: "Wed, 03 Jan 2024 03:04:05 GMT"),
    ])
    func mismatched304IsRequestedAgain(field: (name: String, value: String)) async throws {
        try await withOrigin { origin in
            let url = origin.url("/a.png")
            let stored = field.name == "ETag" ? "\"v1\"" : RevalidationTests.day
            origin.serve(
                "/a.png", .picture(RevalidationTests.picture, (field.name, stored)),
                .notModified(field), .picture(RevalidationTests.other, field))
            try await withWorkspace { workspace in
                _ = try await workspace.prefetch([url])
                let run = try await workspace.prefetch([url])
                #expect(run.report.verdicts == ["downloaded"], "\(run.result)")
                #expect(origin.requests.count == 3)
                #expect(origin.requests[2].header("If-None-Match") == nil)
                #expect(origin.requests[2].header("If-Modified-Since") == nil)
                #expect(try await workspace.judge(sources: [url: RevalidationTests.other]) == 1)
            }
        }
    }

    @Test func originThatOnlySends304IsGivenUp() async throws {
        try await withOrigin { origin in
            let url = origin.url("/a.png")
            origin.serve(
                "/a.png", .picture(RevalidationTests.picture, ("ETag", "\"v1\"")),
                .notModified(("ETag", "\"v2\"")))
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                _ = try await workspace.prefetch([url])
                let run = try await workspace.prefetch([url])
                #expect(run.report.verdicts == ["failed/http-status"], "\(run.result)")
                #expect(origin.requests.count == 3)
                let get = try await workspace.run("get", "--stale", url)
                #expect(get.status == 0, "\(get)")
            }
        }
    }

    @Test func unconditional304Fails() async throws {
        try await withOrigin { origin in
            origin.serve("/never", .notModified(("Cache-Control", "max-age=3600")))
            origin.serve("/bare", .picture(RevalidationTests.picture), .notModified)
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let lines = [origin.url("/bare"), origin.url("/never")]
                _ = try await workspace.prefetch(lines)
                let run = try await workspace.prefetch(lines)
                #expect(
                    run.report.verdicts == ["failed/http-status", "failed/http-status"],
                    "\(run.result)")
                #expect(try await workspace.judge() == 1)
            }
        }
    }

    @Test(arguments: [
        "\"" + String(repeating: "x", count: 65_536) + "\"", "\"a\u{1}b\"", "\"a\u{7F}b\"", "",
        "*", "\"a\", \"b\"",
    ])
    func unsendableTagIsDropped(tag: String) async throws {
        try await withOrigin { origin in
            let url = origin.url("/a.png")
            origin.serve(
                "/a.png",
                .picture(
                    RevalidationTests.picture, ("ETag", tag),
                    ("Last-Modified", RevalidationTests.day)), .notModified)
            try await withWorkspace { workspace in
                let first = try await workspace.prefetch([url])
                #expect(first.report.verdicts == ["downloaded"], "\(first.result)")
                let second = try await workspace.prefetch([url])
                #expect(second.report.verdicts == ["revalidated"], "\(second.result)")
                #expect(origin.requests[1].header("If-None-Match") == nil)
                #expect(origin.requests[1].header("If-Modified-Since") == RevalidationTests.day)
            }
        }
    }
}
