import Foundation
import TestSupport
import Testing

/// Formats that are known by their bytes and not decoded: stored unchanged, excluded, or
/// refused.
@Suite(.timeLimit(.minutes(15)))
struct OtherFormatTests {
    private static let svg = Array(
        """
        <?xml version="1.0"?>
        <!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd">
        <svg xmlns="http://www.w3.org/2000/svg" width="40" height="30"><rect width="40" height="30"/></svg>

        """.utf8)
    private static let pdf = Array("%PDF-1.4\nxref\ntrailer\nstartxref\n9\n%%EOF\n".utf8)
    /// 6 by 4, one strip in front of the directory. A preview, so that no library decodes it.
    static let tiff: [UInt8] = {
        func number(_ value: Int, _ bytes: Int) -> [UInt8] {
            (0..<bytes).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
        }
        func entry(_ tag: Int, _ value: Int) -> [UInt8] {
            number(tag, 2) + number(4, 2) + number(1, 4) + number(value, 4)
        }
        return [0x49, 0x49, 0x2A, 0] + number(32, 4) + [UInt8](repeating: 7, count: 24)
            + number(5, 2) + entry(254, 1) + entry(256, 6) + entry(257, 4) + entry(273, 8)
            + entry(279, 24)
            + number(0, 4)
    }()

    private func serve(_ origin: Origin) -> [String] {
        origin.serve("/a.svg", Response(body: OtherFormatTests.svg, type: "image/svg+xml"))
        origin.serve("/b", Response(body: OtherFormatTests.tiff, type: "image/jpeg"))
        origin.serve("/c.pdf", Response(body: OtherFormatTests.pdf, type: "application/pdf"))
        origin.serve("/d.png", .image(Fixtures.png(width: 8, height: 6)))
        return ["/a.svg", "/b", "/c.pdf", "/d.png"].map { origin.url($0) }
    }

    @Test func areStoredUnchanged() async throws {
        try await withOrigin { origin in
            let lines = serve(origin)
            try await withWorkspace { workspace in
                let run = try await workspace.prefetch(lines)
                #expect(run.result.status == 0, "\(run.result)")
                #expect(run.result.error.contains("stored unchanged, not decoded: 3"))
                #expect(run.summary.notDecoded == 3)
                let entries = run.report.entries.sorted { $0.line < $1.line }
                #expect(entries.map(\.outcome) == Array(repeating: "downloaded", count: 4))
                #expect(entries.map(\.format) == ["svg", "tiff", "pdf", "png"])
                #expect(entries.map(\.isDecoded) == [false, false, false, true])
                #expect(entries.map(\.width) == [nil, 6, nil, 8])
                let bodies = [OtherFormatTests.svg, OtherFormatTests.tiff, OtherFormatTests.pdf]
                for (entry, body) in zip(entries, bodies) {
                    let path = try #require(entry.path)
                    #expect(path.hasSuffix(".\(entry.format ?? "")"))
                    #expect(try workspace.bytes(of: path) == body)
                }
                let again = try await workspace.prefetch(lines)
                #expect(again.report.verdicts == Array(repeating: "fresh", count: 4))
                #expect(origin.requests.count == 4)
                let fresh = again.report.entries.sorted { $0.line < $1.line }
                #expect(fresh.map(\.isDecoded) == [false, false, false, true])
                #expect(fresh.map(\.width) == [nil, 6, nil, 8])
                let listed = try await workspace.run("list", "--json").jsonLines()
                #expect(listed.map { $0["decoded"] as? Bool } == [false, false, false, true])
                #expect(listed.map { $0["width"] as? Int } == [nil, 6, nil, 8])
                let path = try await workspace.run("get", lines[0])
                #expect(path.status == 0 && path.output.hasSuffix(".svg\n"), "\(path)")
            }
        }
    }

    /// Every variant has the same bytes, also one that is requested later.
    @Test func everyVariantIsTheSource() async throws {
        try await withOrigin { origin in
            let url = serve(origin)[0]
            try await withWorkspace { workspace in
                let first = try await workspace.prefetch(
                    [url], "--encode", "png", "--variant", "web=jpeg,q=60", "--store-original")
                #expect(first.report.verdicts == ["downloaded"], "\(first.result)")
                let entry = try #require(first.report.entries.first)
                #expect(
                    entry.variants.map(\.outcome) == ["downloaded", "downloaded", "downloaded"])
                #expect(Set(entry.variants.map(\.sha256)).count == 1)
                let again = try await workspace.prefetch(
                    [url], "--encode", "png", "--variant", "web=jpeg,q=60", "--store-original")
                #expect(again.report.verdicts == ["fresh"])
                let later = try await workspace.prefetch([url], "--variant", "small=jpeg,q=30")
                #expect(later.report.verdicts == ["derived"], "\(later.result)")
                #expect(later.report.entries.first?.isDecoded == false)
                #expect(origin.requests.count == 1)
                #expect(
                    try await workspace.query("SELECT DISTINCT decoded, format FROM variant")
                        == [["0", "svg"]])
            }
        }
    }

    @Test func aRefreshKeepsThem() async throws {
        try await withOrigin { origin in
            origin.serve(
                "/a.svg",
                Response(headers: [("ETag", "\"1\"")], body: OtherFormatTests.svg),
                Response(304, headers: [("ETag", "\"1\"")]),
                Response(headers: [("ETag", "\"2\"")], body: OtherFormatTests.svg))
            let url = origin.url("/a.svg")
            try await withWorkspace { workspace in
                for (verdict, message) in [
                    ("downloaded", nil), ("revalidated", nil),
                    ("downloaded", "the same bytes as before"),
                ] {
                    let run = try await workspace.prefetch([url], "--refresh", "all")
                    #expect(run.report.verdicts == [verdict], "\(run.result)")
                    #expect(run.report.entries.first?.message == message)
                    #expect(run.report.entries.first?.isDecoded == false)
                }
            }
        }
    }

    @Test func areExcludedBySkip() async throws {
        try await withOrigin { origin in
            let lines = serve(origin)
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let run = try await workspace.prefetch(lines, "--other-formats", "skip")
                // Nothing is missing.
                #expect(run.result.status == 0, "\(run.result)")
                #expect(run.result.error.contains("excluded: 3 other-format"))
                let verdicts = Array(repeating: "excluded/other-format", count: 3) + ["downloaded"]
                #expect(run.report.verdicts == verdicts)
                #expect(run.report[line: 1]?.message == "svg is not decoded")
                let requests = origin.requests.count
                let again = try await workspace.prefetch(lines, "--other-formats", "skip")
                #expect(again.report.verdicts == verdicts.dropLast() + ["fresh"])
                #expect(again.result.status == 0)
                #expect(again.report[line: 1]?.blacklistedUntil != nil)
                #expect(origin.requests.count == requests)
                let stored = try await workspace.prefetch(lines)
                #expect(
                    stored.report.verdicts
                        == Array(repeating: "downloaded", count: 3) + ["fresh"])
                #expect(try await workspace.query("SELECT key FROM failure") == [])
            }
        }
    }

    /// Damaged ones and pages always are.
    @Test func areFailuresByFail() async throws {
        try await withOrigin { origin in
            let lines = serve(origin)
            let page =
                "<!DOCTYPE html><html><body>\(String(decoding: OtherFormatTests.svg, as: UTF8.self))"
            let bodies: [([UInt8], String)] = [
                (OtherFormatTests.svg.dropLast(8), "failed/corrupt-image"),
                (OtherFormatTests.tiff.dropLast(5), "failed/corrupt-image"),
                (OtherFormatTests.pdf.dropLast(3), "failed/corrupt-image"),
                (Array(page.utf8), "failed/not-an-image"),
                (Array("<html><svg/></html>".utf8), "failed/not-an-image"),
            ]
            let damaged = bodies.indices.map { index in
                origin.serve("/\(index)", Response(body: bodies[index].0, type: "image/svg+xml"))
                return origin.url("/\(index)")
            }
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let run = try await workspace.prefetch(lines, "--other-formats", "fail")
                #expect(run.result.status == 1)
                #expect(
                    run.report.verdicts
                        == Array(repeating: "failed/unsupported-image", count: 3) + ["downloaded"])
                let again = try await workspace.prefetch(lines, "--other-formats", "fail")
                #expect(again.report.verdicts.count { $0 == "blacklisted" } == 3)
                let stored = try await workspace.prefetch(lines)
                #expect(
                    stored.report.verdicts.count { $0 == "downloaded" } == 3, "\(stored.result)")
                let refused = try await workspace.prefetch(damaged)
                #expect(refused.report.verdicts == bodies.map(\.1), "\(refused.result)")
            }
        }
    }

    /// Neither a type, nor an entity, nor a picture that a drawing names.
    @Test(.enabled(if: FailingCalls.areAvailable, "strace is not there, or may not trace"))
    func nothingThatADrawingNamesIsOpened() async throws {
        try await withOrigin { origin in
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let secret = try workspace.write(Array("secret".utf8), to: "named-by-the-drawing")
                let outside = origin.url("/outside")
                let file = workspace.folder + "/" + secret
                origin.serve(
                    "/a.svg",
                    Response(
                        body: Array(
                            """
                            <?xml version="1.0" standalone="no"?>
                            <?xml-stylesheet href="\(outside)"?>
                            <!DOCTYPE svg SYSTEM "\(file)" [
                            <!ENTITY % more SYSTEM "\(outside)"> <!ENTITY file SYSTEM "\(file)">
                            <!ENTITY page SYSTEM "\(outside)"> %more; ]>
                            <svg xmlns="http://www.w3.org/2000/svg"><text>&file;&page;</text>
                            <image href="\(outside)"/></svg>
                            """.utf8)))
                let trace = workspace.folder + "/trace"
                let result = try await FailingCalls.run(
                    workspace.prefetchCommand([origin.url("/a.svg")]), tracing: "%file,connect",
                    to: trace)
                let run = try workspace.finish(result, entries: 1)
                #expect(run.report.verdicts == ["downloaded"], "\(run.result)")
                #expect(origin.requests.map(\.path) == ["/a.svg"])
                let calls = try String(contentsOfFile: trace, encoding: .utf8)
                // The trace is one: the manifest is in it.
                #expect(calls.contains("manifest-1.txt"))
                #expect(!calls.contains("named-by-the-drawing"))
                let connections = calls.split(separator: "\n").filter {
                    $0.contains("connect(") && $0.contains("htons(\(origin.port))")
                }
                #expect(connections.count == 1, "\(connections)")
            }
        }
    }
}
