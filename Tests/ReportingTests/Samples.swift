import Foundation
import Glibc
import Testing

@testable import PrefetchModel
@testable import Reporting

/// Results and summaries that the suites share, and files to write them to.
enum Samples {
    static let digestText = String(repeating: "0123456789abcdef", count: 4)

    static func downloaded(line: Int = 12) throws -> EntryResult {
        let digest = try #require(ContentDigest(hexadecimal: digestText))
        var result = EntryResult(
            manifest: "m.txt", line: line, url: "https://example.org/a.jpg?size=3",
            key: "https://example.org/a.jpg", outcome: .downloaded, httpStatus: 200, attempts: 1,
            start: 17, bytesReceived: 81_234,
            stored: StoredImage(
                digest: digest, format: .jpeg, widthInPixels: 640, heightInPixels: 427,
                size: ByteCount(70_122)),
            expiresAt: Timestamp(seconds: 1_800_000_000))
        var exchange = EntryResult.Exchange()
        exchange.finalURL = "https://cdn.example.org/a.jpg?sig=HUSH"
        exchange.contentType = "image/jpeg"
        exchange.redirects = 2
        result.exchange = exchange
        result.stages.queue = .microseconds(1500)
        result.stages.transfer = .milliseconds(20)
        result.stages.decode = .microseconds(3)
        result.stages.encode = .seconds(1)
        return result
    }

    static func failed(
        line: Int, manifest: String = "m.txt", host: String = "example.org",
        reason: FailureReason = .httpStatus,
        message: String? = "404 Not Found"
    ) -> EntryResult {
        let url = "https://\(host)/\(line).jpg"
        return EntryResult(
            manifest: manifest, line: line, url: url, key: url, outcome: .failed, reason: reason,
            message: message, httpStatus: reason == .httpStatus ? 404 : nil, attempts: 1)
    }

    static func summary(exitStatus: Int32 = 1) -> RunSummary {
        var counters = RunCounters()
        counters.entriesRead = 3000
        counters.count(.downloaded, times: 2950)
        counters.count(.fresh, times: 37)
        counters.count(.failed, reason: .dns, times: 3)
        counters.count(.failed, reason: .corruptImage, times: 1)
        counters.count(.failed, reason: .httpStatus, times: 9)
        counters.requests = 2963
        counters.bytesReceived = 236_000_000
        counters.bytesStored = 188_800_000
        counters.variantsMade = 2950
        return RunSummary(
            counters: counters, startedAt: Timestamp(seconds: 1_795_239_436),
            elapsed: .milliseconds(4200), exitStatus: exitStatus,
            cacheDirectory: "/var/cache/images")
    }

    /// Runs `body` with the path of a file in a temporary folder, which is removed afterwards.
    static func withTemporaryPath<Result>(_ body: (String) throws -> Result) throws -> Result {
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("reporting-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        return try body(folder.appendingPathComponent("out").path)
    }

    static func text(of path: String) throws -> String {
        try String(contentsOfFile: path, encoding: .utf8)
    }

    /// Runs `body` with descriptors for standard output and standard error, and returns the text
    /// written to them.
    static func captured(
        _ body: (_ output: Int32, _ error: Int32) throws -> Void
    ) throws -> (output: String, error: String) {
        try withTemporaryPath { path in
            let output = open(path + ".1", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
            let error = open(path + ".2", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
            try #require(output >= 0 && error >= 0)
            defer {
                close(output)
                close(error)
            }
            try body(output, error)
            return (try text(of: path + ".1"), try text(of: path + ".2"))
        }
    }

    /// Runs `body` with the writing end of a pipe with a closed reading end.
    static func withClosedPipe(_ body: (Int32) throws -> Void) throws {
        signal(SIGPIPE, SIG_IGN)
        var ends: [Int32] = [0, 0]
        try #require(pipe(&ends) == 0)
        close(ends[0])
        defer { close(ends[1]) }
        try body(ends[1])
    }

    static func objects(_ text: String) throws -> [[String: Any]] {
        try text.split(separator: "\n").map {
            try #require(JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any])
        }
    }
}

let isFullDeviceThere = access("/dev/full", W_OK) == 0
