import Foundation
import PrefetchModel
import TestSupport
import Testing

@testable import Transfers

/// Files and `data:` URLs as responses.
@Suite(.timeLimit(.minutes(15)))
struct LocalOriginTests {
    private final class Folder: Sendable {
        let path: String

        init() throws {
            path = NSTemporaryDirectory() + "prefetch-local-\(UUID().uuidString)"
            for name in ["in", "out"] {
                try FileManager.default.createDirectory(
                    atPath: "\(path)/\(name)", withIntermediateDirectories: true)
            }
        }

        deinit { try? FileManager.default.removeItem(atPath: path) }

        func write(_ bytes: [UInt8], to name: String) throws {
            try Data(bytes).write(to: URL(filePath: "\(path)/\(name)"))
        }

        func link(_ name: String, to target: String) throws {
            try FileManager.default.createSymbolicLink(
                atPath: "\(path)/\(name)", withDestinationPath: target)
        }
    }

    private func result(
        _ url: String, below folder: String?, fields: [HeaderField] = [],
        change: (inout TransferConfiguration) -> Void = { _ in }
    ) throws -> TransferCompletion.TransferResult {
        var configuration = TransferConfiguration(userAgent: "tests")
        configuration.requests.filesBelow = folder
        change(&configuration)
        let transfers = BlockingTransfers(configuration) { Timestamp(milliseconds: 1_000) }
        var request = TransferRequest(url: RequestURL(normalized: url))
        request.fields = fields
        let completion = try transfers.wait(for: transfers.start(request), until: nil)
        return try #require(completion).result
    }

    private func bytes(_ result: TransferCompletion.TransferResult) -> [UInt8]? {
        guard case .response(let response, let body?) = result, response.status == 200 else {
            return nil
        }
        return body.withUnsafeBytes { Array($0) }
    }

    private func failure(_ result: TransferCompletion.TransferResult) -> Failure? {
        if case .failure(let failure) = result { failure.failure } else { nil }
    }

    @Test(
        arguments: [
            ("data:image/png;base64,AQID", [1, 2, 3]), ("data:;base64,AQI=", [1, 2]),
            ("data:;charset=x;BASE64,AQI", [1, 2]), ("data:,a%20b", Array("a b".utf8)),
            ("data:image/svg+xml,%3Csvg/%3E", Array("<svg/>".utf8)),
            ("data:;base64,A%51ID", [1, 2, 3]),
        ] as [(String, [UInt8])])
    func decodesData(url: String, data: [UInt8]) throws {
        let result = try result(url, below: nil)
        #expect(bytes(result) == data)
        guard case .response(let response, _) = result else { return }
        #expect(response.fields.first("cache-control")?.contains("immutable") == true)
    }

    @Test(arguments: ["data:;base64,A", "data:;base64,*", "data:,"])
    func refusesOtherData(url: String) throws {
        #expect(try failure(result(url, below: nil)) != nil)
    }

    /// Files and links inside the folder, by any name of it.
    @Test func readsFilesBelowTheFolder() throws {
        let folder = try Folder()
        let image = (0..<700_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        try folder.write(image, to: "in/a b.png")
        try folder.link("in/relative.png", to: "a b.png")
        try folder.link("in/absolute.png", to: "\(folder.path)/in/a b.png")
        try folder.link("other", to: "in")
        for name in ["in/a%20b.png", "in/relative.png", "in/absolute.png", "other/a%20b.png"] {
            for root in ["in", "in/", "other"] {
                let result = try result(
                    "file://\(folder.path)/\(name)", below: "\(folder.path)/\(root)")
                #expect(bytes(result) == image, "\(name) \(root) \(result)")
            }
        }
    }

    @Test func nothingElseIsRead() throws {
        let folder = try Folder()
        try folder.write([1], to: "out/secret")
        try folder.write([1], to: "inside")
        try folder.link("in/out", to: "../out/secret")
        try folder.link("in/absolute", to: "\(folder.path)/out/secret")
        try folder.link("in/folder", to: "../out")
        try folder.link("in/dangling", to: "nothing")
        #expect(mkfifo("\(folder.path)/in/pipe", 0o600) == 0)
        let root = "\(folder.path)/in"
        for (name, reason) in [
            ("out/secret", FailureReason.refusedAddress), ("in/out", .refusedAddress),
            ("in/absolute", .refusedAddress), ("in/folder/secret", .refusedAddress),
            ("in/%2e%2e/out/secret", .refusedAddress), ("inside", .refusedAddress),
            ("in/dangling", .invalidEntry), ("in/none", .invalidEntry), ("in/pipe", .invalidEntry),
            ("in", .refusedAddress), ("in/a%00b", .invalidEntry),
        ] {
            let failure = try failure(result("file://\(folder.path)/\(name)", below: root))
            #expect(failure?.reason == reason, "\(name): \(String(describing: failure))")
        }
        try folder.write([1], to: "in/a")
        #expect(
            try failure(result("file://\(root)/a", below: nil))?.message.contains("--files-below")
                == true)
    }

    @Test func anUnchangedFileIsNotRead() throws {
        let folder = try Folder()
        try folder.write([1, 2], to: "in/a")
        let url = "file://\(folder.path)/in/a"
        guard case .response(let first, _) = try result(url, below: folder.path),
            let tag = first.fields.first("etag")
        else {
            Issue.record("no response")
            return
        }
        let condition = [HeaderField(name: "If-None-Match", value: tag)]
        guard case .response(let same, nil) = try result(url, below: folder.path, fields: condition)
        else {
            Issue.record("the file was read")
            return
        }
        #expect(same.status == 304)
        try folder.write([1, 2, 3], to: "in/a")
        #expect(bytes(try result(url, below: folder.path, fields: condition)) == [1, 2, 3])
    }

    /// Another file under the name, with the size and the time of the old one.
    @Test func aReplacedFileIsRead() throws {
        let folder = try Folder()
        func write(_ bytes: [UInt8], to name: String) throws {
            try folder.write(bytes, to: name)
            var times = [timespec(tv_sec: 1_000, tv_nsec: 0), timespec(tv_sec: 1_000, tv_nsec: 0)]
            #expect(utimensat(AT_FDCWD, "\(folder.path)/\(name)", &times, 0) == 0)
        }
        let url = RequestURL(normalized: "file://\(folder.path)/in/a")
        try write([1, 2], to: "in/a")
        let first = try #require(LocalFile.tag(of: url, below: folder.path))
        #expect(LocalFile.tag(of: url, below: folder.path) == first)
        try write([3, 4], to: "in/b")
        #expect(rename("\(folder.path)/in/b", "\(folder.path)/in/a") == 0)
        #expect(LocalFile.tag(of: url, below: folder.path) != first)
        for other in [nil, "\(folder.path)/out", "\(folder.path)/none"] as [String?] {
            #expect(LocalFile.tag(of: url, below: other) == nil)
        }
        #expect(LocalFile.tag(of: RequestURL(normalized: "data:,a"), below: folder.path) == nil)
    }

    /// Names are bytes.
    @Test func namesNeedNotBeUTF8() throws {
        let folder = try Folder()
        try folder.write([7], to: "in/a")
        let name =
            Array("\(folder.path)/in/".utf8CString.dropLast()) + [CChar(bitPattern: 0xE9), 0]
        #expect(rename("\(folder.path)/in/a", name) == 0)
        let result = try result("file://\(folder.path)/in/%E9", below: folder.path)
        #expect(bytes(result) == [7])
        #expect(unlink(name) == 0)
    }

    @Test func anEmptyFileIsNotRetried() throws {
        let folder = try Folder()
        try folder.write([], to: "in/a")
        for url in ["file://\(folder.path)/in/a", "data:,"] {
            #expect(try failure(result(url, below: folder.path))?.reason == .notAnImage)
        }
    }

    @Test func aMissingFolderIsNamed() throws {
        let folder = try Folder()
        try folder.write([1], to: "in/a")
        let failure = try failure(
            result("file://\(folder.path)/in/a", below: "\(folder.path)/none"))
        #expect(failure?.message == "--files-below \(folder.path)/none: no such folder")
    }

    @Test func limitsHold() throws {
        let folder = try Folder()
        try folder.write([UInt8](repeating: 1, count: 5000), to: "in/a")
        let url = "file://\(folder.path)/in/a"
        let large = try result(url, below: folder.path) {
            $0.limits.maximumBodySize = ByteCount(4999)
        }
        #expect(failure(large)?.reason == .tooLarge)
        // One body may always exceed the budget.
        let small = try result(url, below: folder.path) { $0.bodyBudget = ByteCount(100) }
        #expect(bytes(small)?.count == 5000)
    }
}
