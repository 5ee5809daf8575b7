import FileOutput
import Foundation
import Glibc
import PrefetchModel
import Testing

@testable import Reporting

@Suite(.timeLimit(.minutes(15)))
struct ReportWriterTests {
    @Test func writesEveryMemberOfAResult() throws {
        try Samples.withTemporaryPath { path in
            var writer = try ReportWriter(path: path)
            try writer.write(Samples.downloaded())
            try writer.write(Samples.failed(line: 3))
            try writer.finish(Samples.summary())
            let lines = try Samples.text(of: path).split(separator: "\n")
            let digest = Samples.digestText
            let line0 = #"""
                {"type":"result","manifest":"m.txt","line":12,\#
                "url":"https://example.org/a.jpg?size=3",\#
                "key":"https://example.org/a.jpg","outcome":"downloaded","reason":null,\#
                "message":null,"http_status":200,"attempts":1,"start":17,\#
                "bytes_received":81234,"bytes_stored":70122,"format":"jpeg","decoded":true,"width":640,\#
                "height":427,"sha256":"\#(digest)","path":"content/01/\#(digest).jpg",\#
                "expires_at":"2027-01-15T08:00:00Z","queue_ms":1.500,\#
                "transfer_ms":20.000,"decode_ms":0.003,"encode_ms":1000.000,\#
                "final_url":"https://cdn.example.org/a.jpg?sig=***","content_type":"image/jpeg",\#
                "redirects":2,"blacklisted_until":null}
                """#
            #expect(lines[0] == line0)
            let line1 = #"""
                {"type":"result","manifest":"m.txt","line":3,\#
                "url":"https://example.org/3.jpg","key":"https://example.org/3.jpg",\#
                "outcome":"failed","reason":"http-status","message":"404 Not Found",\#
                "http_status":404,"attempts":1,"start":null,"bytes_received":0,\#
                "bytes_stored":null,"format":null,"decoded":null,"width":null,"height":null,\#
                "sha256":null,"path":null,"expires_at":null,"queue_ms":null,\#
                "transfer_ms":null,"decode_ms":null,"encode_ms":null,"final_url":null,\#
                "content_type":null,"redirects":null,"blacklisted_until":null}
                """#
            #expect(lines[1] == line1)
            #expect(lines.count == 3)
        }
    }

    @Test func writesTheVariantsBehindTheFieldsOfTheFirst() throws {
        try Samples.withTemporaryPath { path in
            var result = try Samples.downloaded()
            let digest = Samples.digestText
            let image = try #require(result.stored)
            let web = try #require(VariantName("web"))
            result.variants = [
                VariantResult(
                    RequestedVariant(name: .main, recipe: Recipe()), outcome: .downloaded,
                    stored: image),
                VariantResult(
                    RequestedVariant(name: web, recipe: Recipe(encoding: .jpeg, quality: 60)),
                    outcome: .failed, reason: .unsupportedImage),
                VariantResult(
                    RequestedVariant(name: .original, recipe: Recipe(encoding: .original)),
                    outcome: .fresh,
                    stored: StoredImage(
                        digest: image.digest, format: .png, widthInPixels: 1, heightInPixels: 2,
                        orientation: 6, size: ByteCount(3))),
            ]
            var writer = try ReportWriter(path: path, pathsIn: "/cache")
            try writer.write(result)
            try writer.write(Samples.failed(line: 3))
            try writer.finish(Samples.summary())
            let lines = try Samples.text(of: path).split(separator: "\n")
            let variants = #"""
                "redirects":2,"blacklisted_until":null,"variants":[\#
                {"name":"main","recipe":"same;q=85;strip=safe","outcome":"downloaded",\#
                "reason":null,"format":"jpeg","decoded":true,"width":640,"height":427,"bytes":70122,\#
                "sha256":"\#(digest)","path":"/cache/content/01/\#(digest).jpg"},\#
                {"name":"web","recipe":"jpeg;q=60;strip=safe","outcome":"failed",\#
                "reason":"unsupported-image","format":null,"decoded":null,"width":null,"height":null,\#
                "bytes":null,"sha256":null,"path":null},\#
                {"name":"original","recipe":"original","outcome":"fresh","reason":null,\#
                "format":"png","decoded":true,"width":1,"height":2,"orientation":6,"bytes":3,\#
                "sha256":"\#(digest)","path":"/cache/content/01/\#(digest).png"}]}
                """#
            #expect(lines[0].hasSuffix(variants))
            #expect(
                lines[0].contains(
                    #""bytes_stored":70122,"format":"jpeg","decoded":true,"width":640,"#))
            #expect(lines[1].hasSuffix(#""redirects":null,"blacklisted_until":null}"#))
            #expect(try Samples.objects(Samples.text(of: path)).count == 3)
        }
    }

    @Test func pathsAreAbsoluteOnDemand() throws {
        try Samples.withTemporaryPath { path in
            var writer = try ReportWriter(path: path, pathsIn: "/var/cache/images")
            try writer.write(Samples.downloaded())
            try writer.write(Samples.failed(line: 3))
            try writer.finish(Samples.summary())
            let objects = try Samples.objects(Samples.text(of: path))
            #expect(
                objects[0]["path"] as? String
                    == "/var/cache/images/content/01/\(Samples.digestText).jpg")
            #expect(objects[1]["path"] is NSNull)
        }
    }

    @Test func anImageToBeValidatedAtEveryUseHasNoExpiry() throws {
        try Samples.withTemporaryPath { path in
            var result = try Samples.downloaded()
            result.expiresAt = Timestamp(milliseconds: 0)
            var writer = try ReportWriter(path: path)
            try writer.write(result)
            try writer.finish(Samples.summary())
            #expect(try Samples.text(of: path).contains("\"expires_at\":null"))
        }
    }

    @Test func endsWithTheSummary() throws {
        let objects = try Samples.withTemporaryPath { path in
            var writer = try ReportWriter(path: path)
            try writer.finish(Samples.summary())
            return try Samples.objects(Samples.text(of: path))
        }
        let object = try #require(objects.first)
        #expect(objects.count == 1)
        #expect(
            Set(object.keys) == [
                "type", "schema_version", "entries", "outcomes", "reasons", "requests",
                "bytes_received", "bytes_stored", "started_at", "elapsed_ms", "entries_per_second",
                "bytes_per_second", "exit_status", "cache_dir", "sandbox", "message", "signal",
                "outage",
                "known_failures", "skipped", "variants_made", "exclusions", "not_decoded", "pruned",
                "hosts",
                "pauses", "lists", "ended_by", "partial_list",
            ])
        #expect(object["type"] as? String == "summary")
        #expect(object["schema_version"] as? Int == 3)
        #expect(object["outage"] is NSNull && object["pruned"] is NSNull)
        let outcomes = try #require(object["outcomes"] as? [String: Int])
        #expect(Set(outcomes.keys) == Set(Outcome.allCases.map(\.rawValue)))
        #expect(outcomes.values.reduce(0, +) == object["entries"] as? Int)
        #expect(outcomes["downloaded"] == 2950)
        #expect(outcomes["excluded"] == 0)
        let reasons = try #require(object["reasons"] as? [String: Int])
        let exclusions = try #require(object["exclusions"] as? [String: Int])
        let all = FailureReason.allCases
        #expect(Set(reasons.keys) == Set(all.filter { !$0.isExclusion }.map(\.rawValue)))
        #expect(Set(exclusions.keys) == Set(all.filter(\.isExclusion).map(\.rawValue)))
        #expect(exclusions.values.reduce(0, +) == 0 && object["not_decoded"] as? Int == 0)
        #expect(reasons.values.reduce(0, +) == outcomes["failed"])
        #expect(reasons["http-status"] == 9)
        #expect(object["variants_made"] as? Int == 2950)
        #expect(object["elapsed_ms"] as? Double == 4200)
        #expect(object["entries_per_second"] as? Double == 714.286)
        #expect(object["exit_status"] as? Int == 1)
        #expect(object["message"] is NSNull)
        #expect(object["signal"] is NSNull)
    }

    @Test func writesAnOutageAsAnObject() throws {
        var summary = Samples.summary()
        summary.outage = Outage(
            reason: .httpStatus, failures: 25, heldBack: 20, asked: 26,
            hostCount: 2, hosts: ["https://a:443", "https://b:443"])
        #expect(
            String(decoding: summary.json, as: UTF8.self).contains(
                #"""
                "outage":{"reason":"http-status","failures":25,"held_back":20,"asked":26,\#
                "hosts":2}
                """#))
    }

    @Test func summaryOfNoTimeHasNoRates() throws {
        var summary = Samples.summary()
        summary.elapsed = .zero
        summary.stoppedBySignal = 15
        summary.fatalMessage = "/cache: No space left on device"
        let object = try #require(
            try Samples.objects(String(decoding: summary.json, as: UTF8.self)).first)
        #expect(object["entries_per_second"] is NSNull)
        #expect(object["bytes_per_second"] is NSNull)
        #expect(object["signal"] as? Int == 15)
        #expect(object["message"] as? String == "/cache: No space left on device")
    }

    @Test func keepsEveryLineAcrossItsBuffer() throws {
        let objects = try Samples.withTemporaryPath { path in
            var writer = try ReportWriter(path: path)
            for line in 1...2000 { try writer.write(Samples.downloaded(line: line)) }
            try writer.finish(Samples.summary())
            return try Samples.objects(Samples.text(of: path))
        }
        #expect(objects.dropLast().map { $0["line"] as? Int } == (1...2000).map { $0 })
        #expect(objects.last?["type"] as? String == "summary")
    }

    @Test func emptiesAnEarlierReportAndRespectsTheUmask() throws {
        try Samples.withTemporaryPath { path in
            try String(repeating: "old\n", count: 1000).write(
                toFile: path, atomically: false, encoding: .utf8)
            var writer = try ReportWriter(path: path)
            try writer.finish(Samples.summary())
            #expect(try !Samples.text(of: path).contains("old"))
            let second = path + "-new"
            var other = try ReportWriter(path: second)
            try other.finish(Samples.summary())
            var status = stat()
            #expect(stat(second, &status) == 0)
            #expect(status.st_mode & 0o111 == 0)
            #expect(status.st_mode & 0o600 == 0o600)
        }
    }

    @Test func namesThePathThatCannotBeOpened() throws {
        try Samples.withTemporaryPath { path in
            // `path` doesn't exist, so it isn't a folder.
            let error = #expect(throws: OutputError.self) {
                _ = try OutputFile(path: path + "/report\n.jsonl")
            }
            #expect(
                error?.description
                    == "\(path)/report\\n.jsonl: cannot open: No such file or directory")
        }
    }

    @Test(.enabled(if: isFullDeviceThere)) func reportsAFullDisk() throws {
        var writer = try ReportWriter(path: "/dev/full")
        try writer.write(Samples.downloaded())
        let expected = OutputError.system(operation: "write", subject: "/dev/full", code: ENOSPC)
        do {
            try writer.finish(Samples.summary())
            Issue.record("a full device took the report")
        } catch {
            #expect(error == expected)
            #expect(error.description == "/dev/full: cannot write: No space left on device")
        }
        #expect(writer.failure == expected)
    }

    @Test func reportsAClosedPipeAndStaysFailed() throws {
        try Samples.withClosedPipe { descriptor in
            var writer = ReportWriter(OutputFile(borrowing: descriptor, name: "standard output"))
            var failures: [OutputError] = []
            for line in 1...1000 {
                do {
                    try writer.write(Samples.downloaded(line: line))
                } catch let error as OutputError {
                    failures.append(error)
                }
            }
            #expect(failures.count > 800)
            #expect(Set(failures) == [.closedPipe(subject: "standard output")])
        }
    }

    @Test func waitsForAPipeThatDoesNotBlock() throws {
        var ends: [Int32] = [0, 0]
        try #require(pipe(&ends) == 0)
        for end in ends { #expect(fcntl(end, F_SETFL, O_NONBLOCK) == 0) }
        let reading = ends[0]
        let reader = Thread.detachedReader(reading)
        let file = OutputFile(borrowing: ends[1], name: "pipe")
        let bytes = (0..<1_000_000).map { UInt8(truncatingIfNeeded: $0) }
        try file.write(bytes)
        close(ends[1])
        #expect(reader.waitForBytes() == bytes)
    }

    @Test func hidesSecretsInEveryMember() throws {
        let secret = "SECRET"
        let url = "https://user:\(secret)@example.org/a.jpg?X-Amz-Signature=\(secret)&x=1"
        var result = Samples.failed(line: 1, message: "cannot resolve '\(url)': <\(url)>, \(url)")
        result.url = url
        result.key = "https://example.org/a.jpg?token=\(secret)"
        var summary = Samples.summary()
        summary.fatalMessage = "\(url): broken"
        let text = try Samples.withTemporaryPath { path in
            var writer = try ReportWriter(path: path)
            try writer.write(result)
            try writer.finish(summary)
            return try Samples.text(of: path)
        }
        #expect(!text.contains(secret))
        #expect(
            try Samples.objects(text)[0]["key"] as? String == "https://example.org/a.jpg?token=***")
    }

    @Test func writesLinesOfEitherKind() throws {
        let text = try Samples.withTemporaryPath { path in
            var writer = LineWriter(try OutputFile(path: path))
            var object = JSONObject()
            object.add("key", "a")
            try writer.write(object)
            try writer.write(line: "plain")
            try writer.finish()
            return try Samples.text(of: path)
        }
        #expect(text == "{\"key\":\"a\"}\nplain\n")
    }
}

/// Reads a descriptor to its end on a separate thread.
private final class PipeReader: @unchecked Sendable {
    // Written by the thread before it signals, read by the test after it waited.
    private var bytes: [UInt8] = []
    private let done = DispatchSemaphore(value: 0)

    func read(_ descriptor: Int32) {
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = Glibc.read(descriptor, &buffer, buffer.count)
            if count > 0 {
                bytes += buffer[..<count]
            } else if count < 0, errno == EAGAIN {
                var request = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
                poll(&request, 1, -1)
            } else {
                break
            }
        }
        close(descriptor)
        done.signal()
    }

    func waitForBytes() -> [UInt8] {
        done.wait()
        return bytes
    }
}

extension Thread {
    fileprivate static func detachedReader(_ descriptor: Int32) -> PipeReader {
        let reader = PipeReader()
        detachNewThread { reader.read(descriptor) }
        return reader
    }
}
