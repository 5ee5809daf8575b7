import Foundation
import PrefetchModel
import TestSupport
import Testing
import Threading
import Transfers

@testable import Buckets

@Suite(.timeLimit(.minutes(15)))
struct ObjectTests {
    private let image = (0..<200_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }

    private func withStorage<Success: Sendable>(
        _ answer: @escaping @Sendable (Origin.Request) -> Response?,
        _ work: @escaping @Sendable (ObjectStorage) throws -> Success
    ) async throws -> (result: Result<Success, any Error>, requests: [Origin.Request]) {
        try await withOrigin { origin in
            origin.serve(answer)
            let storage = try BucketSettings().storage(at: origin)
            let result = try await blocking { Result { try work(storage) } }
            return (result, origin.snapshot.requests)
        }
    }

    // MARK: Reading

    @Test func aRangeIsRead() async throws {
        let image = image
        let (bytes, requests) = try await withStorage { request in
            request.header("Range") == "bytes=10-19"
                ? Response(206, body: Array(image[10..<20])) : Response(body: image)
        } _: {
            try $0.bytes(of: "a", at: 10..<20)
        }
        #expect(try bytes.get() == Array(image[10..<20]))
        #expect(requests.count == 1)
    }

    /// A whole answer to a request for a range, and a short one.
    @Test(arguments: [
        Response(body: Array(repeating: 1, count: 10)), Response(206, body: [1, 2]),
        Response(206, body: Array(repeating: 1, count: 11)),
        Response(body: Array(repeating: 1, count: 100_000)),
    ])
    func anotherRangeIsRefused(answer: Response) async throws {
        let (bytes, _) = try await withStorage { _ in
            answer
        } _: {
            try $0.bytes(of: "a", at: 0..<10)
        }
        let error = #expect(throws: ObjectStorageError.self) { try bytes.get() }
        #expect(error?.kind == .other)
        #expect(
            error?.description.contains("did not send the requested range") == true, "\(bytes)")
    }

    @Test func aFileIsWrittenAgainAfterABreak() async throws {
        let image = image
        let responses = Counted([
            Response(body: image, ending: .resetAfter(bodyBytes: 150_000)), Response(body: image),
        ])
        try await withFile { file in
            let (found, requests) = try await withStorage { _ in
                responses.next()
            } _: {
                try $0.download("a", to: file, size: ByteCount(image.count))
            }
            #expect(try found.get() == digest(image))
            #expect(try contents(of: file) == image)
            #expect(requests.count == 2)
        }
    }

    @Test func aLargeFileArrivesInRanges() async throws {
        let bytes = image
        try await withFile { file in
            let (found, requests) = try await withStorage { request in
                let ends = request.header("Range")?.dropFirst("bytes=".count).split(separator: "-")
                    .compactMap { Int($0) }
                guard let ends, ends.count == 2 else { return nil }
                return Response(206, body: Array(bytes[ends[0]...ends[1]]))
            } _: {
                try $0.download(
                    "a", to: file, size: ByteCount(bytes.count), rangeSize: ByteCount(70_000))
            }
            #expect(try found.get() == digest(bytes))
            #expect(try contents(of: file) == bytes)
            #expect(
                requests.map { $0.header("Range") }
                    == ["bytes=0-69999", "bytes=70000-139999", "bytes=140000-199999"])
        }
    }

    @Test func aLongerObjectIsDamaged() async throws {
        try await withFile { file in
            let (found, requests) = try await withStorage { _ in
                Response(body: [1, 2, 3])
            } _: {
                try $0.download("a", to: file, size: ByteCount(2))
            }
            let error = #expect(throws: ObjectStorageError.self) { try found.get() }
            #expect(error?.kind == .damaged)
            #expect(requests.count == 1)
        }
    }

    @Test func aMissingObjectHasItsOwnKind() async throws {
        let (bytes, _) = try await withStorage { _ in
            problem(404, "NoSuchKey")
        } _: {
            try $0.bytes(of: "a", limit: .mebibytes(1))
        }
        let error = #expect(throws: ObjectStorageError.self) { try bytes.get() }
        #expect(error?.kind == .missing)
        #expect(
            error?.description.hasPrefix("s3://b/p/a: the service answered 404 NoSuchKey") == true)
        let (removed, requests) = try await withStorage { _ in
            Response(404)
        } _: {
            try $0.remove("a")
        }
        try removed.get()
        #expect(requests.map(\.method) == ["DELETE"])
    }

    // MARK: Listing

    private static func listing(_ names: [String], truncated: Bool) -> Response {
        let contents = names.map { "<Contents><Key>p/\($0)</Key><Size>3</Size></Contents>" }
        return .text(
            "<ListBucketResult><IsTruncated>\(truncated)</IsTruncated>\(contents.joined())"
                + "</ListBucketResult>", type: "application/xml")
    }

    @Test func aListingHasNamesAndSizes() async throws {
        let (page, _) = try await withStorage { _ in
            Self.listing(["x/a", "x/b"], truncated: true)
        } _: {
            try $0.list("x/", after: "x/", limit: 2)
        }
        let found = try page.get()
        #expect(found.objects.map(\.name) == ["x/a", "x/b"])
        #expect(found.objects.map(\.size) == [3, 3])
        #expect(!found.isLast)
    }

    /// Names out of order, before the last one, and of another folder; text that is no listing.
    @Test(arguments: [
        listing(["x/b", "x/a"], truncated: false), listing(["w/a"], truncated: false),
        listing(["x/", "x/b"], truncated: false), .text("<A>", type: "application/xml"),
    ])
    func anUnusableListingIsRefused(answer: Response) async throws {
        let (page, _) = try await withStorage { _ in
            answer
        } _: {
            try $0.list("x/", after: "x/", limit: 2)
        }
        #expect(throws: ObjectStorageError.self) { try page.get() }
    }

    // MARK: Writing

    @Test func aFileIsSentAgainFromItsStart() async throws {
        let image = image
        let responses = Counted([problem(503, "SlowDown"), stored()])
        try await withFile(image) { file in
            let (result, requests) = try await withStorage { _ in
                responses.next()
            } _: {
                try $0.put(
                    "a", .file(file, offset: 0, count: image.count), digest: digest(image),
                    mediaType: "image/png")
            }
            try result.get()
            #expect(requests.map(\.body) == [image, image])
        }
    }

    /// The service compares the bytes with their digest, or the file ends early.
    @Test func damagedBytesHaveTheirOwnKind() async throws {
        let (refused, _) = try await withStorage { _ in
            problem(400, "BadDigest")
        } _: {
            try $0.put("a", .bytes([1]), digest: digest([2]), mediaType: "image/png")
        }
        let error = #expect(throws: ObjectStorageError.self) { try refused.get() }
        #expect(error?.kind == .damaged)
        try await withFile([1, 2]) { file in
            let (short, _) = try await withStorage { _ in
                stored()
            } _: {
                try $0.put(
                    "a", .file(file, offset: 0, count: 3), digest: digest([1, 2, 3]),
                    mediaType: "image/png")
            }
            let error = #expect(throws: ObjectStorageError.self) { try short.get() }
            #expect(error?.kind == .damaged)
        }
    }

    /// A sparse file of 64 MiB and a byte has five parts.
    private func putLarge(
        failing failure: Response? = nil
    ) async throws -> (result: Result<Void, any Error>, requests: [Origin.Request]) {
        let size = ObjectStorage.largestPut.bytes + 1
        return try await withFile { file in
            guard ftruncate(file, size) == 0 else { throw Missing() }
            return try await withStorage { request in
                switch request.method {
                case "POST" where request.target.hasSuffix("?uploads="):
                    .text("<R><UploadId>u&amp;1</UploadId></R>", type: "application/xml")
                case "POST": .text("<R><ETag>e</ETag></R>", type: "application/xml")
                case "PUT" where request.target.contains("partNumber=3&"): failure ?? stored()
                default: stored()
                }
            } _: {
                try $0.put(
                    "a", .file(file, offset: 0, count: size), digest: digest([]),
                    mediaType: "application/vnd.sqlite3")
            }
        }
    }

    @Test func aLargeFileIsSentInParts() async throws {
        let (result, requests) = try await putLarge()
        try result.get()
        let parts = requests.filter { $0.method == "PUT" }
        #expect(parts.map(\.body.count) == Array(repeating: 16 << 20, count: 4) + [1])
        #expect(parts.last?.target == "/b/p/a?partNumber=5&uploadId=u%261")
        #expect(parts.allSatisfy { $0.header("x-amz-content-sha256") == "\(digest($0.body))" })
        let end = try #require(requests.last)
        #expect(end.method == "POST")
        let document = String(decoding: end.body, as: UTF8.self)
        #expect(document.contains("<Part><PartNumber>5</PartNumber><ETag>\"e\"</ETag></Part>"))
    }

    @Test func aFailedPartEndsTheUpload() async throws {
        let (result, requests) = try await putLarge(failing: problem(403, "AccessDenied"))
        #expect(throws: ObjectStorageError.self) { try result.get() }
        #expect(requests.last?.method == "DELETE")
        #expect(requests.last?.target == "/b/p/a?uploadId=u%261")
    }
}

/// Responses that are given in turn, the last one again and again.
final class Counted: Sendable {
    private let rest: Monitor<ArraySlice<Response>>

    init(_ responses: [Response]) {
        rest = Monitor(responses[...])
    }

    func next() -> Response? {
        rest.withLock { rest in
            rest.count > 1 ? rest.removeFirst() : rest.first
        }
    }
}
