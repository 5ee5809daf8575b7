import Foundation
import PrefetchModel
import TestSupport
import Testing
import Transfers

@testable import Buckets

@Suite(.timeLimit(.minutes(15)))
struct RetryTests {
    /// Reads the object `a` from a service that gives these responses.
    private func read(
        _ responses: [Response], _ settings: BucketSettings = BucketSettings()
    ) async throws -> (bytes: Result<[UInt8], any Error>, requests: Int) {
        try await withOrigin { origin in
            let rest = Counted(responses)
            origin.serve { _ in rest.next() }
            let storage = try settings.storage(at: origin)
            let bytes = try await blocking {
                Result { try storage.bytes(of: "a", limit: .mebibytes(1)) }
            }
            return (bytes, origin.snapshot.requests.count)
        }
    }

    @Test(arguments: [
        problem(503, "SlowDown"), problem(500, "InternalError"), problem(400, "RequestTimeout"),
        Response(429), Response(ending: .resetBeforeHead), Response(ending: .closedInsideHead),
        Response(body: [1, 2], ending: .closedAfter(bodyBytes: 1)),
    ])
    func aRequestIsRepeated(failure: Response) async throws {
        let (bytes, requests) = try await read([failure, Response(body: [1])])
        #expect(try bytes.get() == [1])
        #expect(requests == 2)
    }

    @Test func theDelayOfRetryAfterIsKept() async throws {
        let start = ContinuousClock.now
        let (bytes, _) = try await read([
            problem(503, "SlowDown", headers: [("Retry-After", "2")]), Response(body: [1]),
        ])
        #expect(try bytes.get() == [1])
        #expect(.now - start >= .seconds(2))
    }

    @Test(arguments: [
        (problem(403, "AccessDenied"), "these credentials may not do that"),
        (problem(403, "SignatureDoesNotMatch"), "check the secret key"),
        (problem(403, "RequestTimeTooSkewed"), "set the clock of this machine"),
        (problem(404, "NoSuchBucket"), "create the bucket first"),
        (
            problem(301, "PermanentRedirect", headers: [("x-amz-bucket-region", "ap-south-1")]),
            "the bucket is in ap-south-1"
        ),
        (Response(302, headers: [("Location", "http://h/x")]), "redirects to http://h/x"),
    ])
    func anErrorIsNotRepeated(failure: Response, hint: String) async throws {
        let (bytes, requests) = try await read([failure, Response(body: [1])])
        let error = #expect(throws: ObjectStorageError.self) { try bytes.get() }
        #expect(requests == 1)
        #expect(error?.hint?.contains(hint) == true, "\(String(describing: error))")
        #expect((error?.kind == .missing) == (failure.status == 404))
    }

    @Test func aStallIsTriedTwice() async throws {
        var settings = BucketSettings()
        settings.transfers.limits.stallTimeout = .milliseconds(300)
        let stall = Response(ending: .stalledBeforeHead)
        let (bytes, requests) = try await read([stall, stall, Response(body: [1])], settings)
        let error = #expect(throws: ObjectStorageError.self) { try bytes.get() }
        #expect(requests == 2)
        #expect(error?.description.hasSuffix(", 2 times") == true)
    }

    @Test func aHeadWithoutEndIsReadOnce() async throws {
        let head = Response(
            headers: [("X-Field", String(repeating: "x", count: 1000))], ending: .endlessHead)
        let (bytes, requests) = try await read([head, Response(body: [1])])
        #expect(throws: ObjectStorageError.self) { try bytes.get() }
        #expect(requests == 1)
    }

    /// On the handle of an earlier response, libcurl 7.88 wrote to freed memory.
    @Test func aFirstFieldThatBeginsWithABlankIsRefused() async throws {
        let long = problem(
            503, "SlowDown", headers: [("X-Field", String(repeating: "x", count: 200))])
        var folded = Response(body: [2], framing: .closeDelimited)
        folded.rawHead = "HTTP/1.1 200 OK\r\n Content-Length: 1\r\nContent-Length: 1\r\n\r\n"
        let (bytes, requests) = try await read([long, folded, long, folded, Response(body: [1])])
        #expect(try bytes.get() == [1])
        #expect(requests == 5)
    }

    @Test(arguments: [false, true]) func anAnswerThatDripsIsTriedTwice(inHead: Bool) async throws {
        let fields = String(repeating: "X: y\r\n", count: 900)
        var drip = Response(
            body: Array((inHead ? fields : String(repeating: " ", count: 100_000)).utf8),
            framing: inHead ? .closeDelimited : .announced)
        if inHead { drip.rawHead = "HTTP/1.1 200 OK\r\n" }
        drip.drip = (inHead ? 6 : 1, .milliseconds(100))
        let (bytes, requests) = try await read([drip, drip, Response(body: [1])])
        let error = #expect(throws: ObjectStorageError.self) { try bytes.get() }
        #expect(requests == 2)
        #expect(error?.description.contains("less than 1 KiB a second") == true)
    }

    @Test func stopEndsARequest() async throws {
        try await withOrigin { origin in
            origin.serve { _ in Response(ending: .stalledBeforeHead) }
            let storage = try BucketSettings().storage(at: origin)
            async let result = blocking {
                Result { try storage.bytes(of: "a", limit: .mebibytes(1)) }
            }
            try await origin.wait(for: "a request") { $0.requests.count == 1 }
            storage.stop()
            let ended = try await result
            let error = #expect(throws: ObjectStorageError.self) { try ended.get() }
            #expect(error?.kind == .cancelled)
            let next = try await blocking {
                Result { try storage.bytes(of: "a", limit: ByteCount(1)) }
            }
            #expect(throws: ObjectStorageError.self) { try next.get() }
            #expect(origin.snapshot.requests.count == 1)
        }
    }

    @Test func theDeadlineEndsARequest() async throws {
        var settings = BucketSettings()
        settings.deadline = .now + .milliseconds(500)
        let (bytes, _) = try await read([Response(ending: .stalledBeforeHead)], settings)
        let error = #expect(throws: ObjectStorageError.self) { try bytes.get() }
        #expect(error?.kind == .late)
        #expect(error?.userError.kind == .cancelled)
    }
}
