import Foundation
import PrefetchModel
import Testing

@testable import CacheStorage

@Suite(.timeLimit(.minutes(15)))
struct ListStoreTests {
    private let folder: TemporaryFolder
    private let url = "https://example.com/list.txt?a=b"

    init() throws { folder = try TemporaryFolder() }

    private func makeStore() throws -> ListStore {
        ListStore(try CacheDirectory(path: folder.path, access: .readWrite))
    }

    private func list(
        _ response: StoredResponse = StoredResponse(), of url: String? = nil
    ) -> StoredList {
        StoredList(
            url: url ?? self.url, responseURL: "https://cdn.example.com/l", response: response,
            validatedAt: Timestamp(milliseconds: 17), expiresAt: .distantFuture, isPublic: false)
    }

    private func write(_ text: String, _ list: StoredList, in store: ListStore) throws -> ListFile {
        let outcome = Array(text.utf8).withUnsafeBytes { bytes in
            Result { () throws(StorageError) in try store.write(list, bytes) }
        }
        return try outcome.get()
    }

    private func text(of file: ListFile) throws -> String {
        var bytes: [UInt8] = []
        #expect(try file.forEachPiece { piece throws(StorageError) in bytes += Array(piece) })
        return String(decoding: bytes, as: UTF8.self)
    }

    @Test func aListIsReadAsItWasWritten() throws {
        let store = try makeStore()
        #expect(store.open(url) == nil)
        let response = StoredResponse(
            entityTag: "\"a: b\"", lastModified: "x", cacheControl: "max-age=1, private",
            expires: "0", vary: "accept: a\nuser-agent: ", date: Timestamp(milliseconds: -5),
            contentType: "text/plain")
        let written = try write("a\n\nb\n", list(response), in: store)
        #expect(store.open(url) == nil)
        try store.keep(written)
        let read = try #require(store.open(url))
        #expect(read.list == list(response))
        #expect(read.size == 5)
        #expect(try text(of: read) == "a\n\nb\n")
    }

    @Test func aNewHeadKeepsTheList() throws {
        let store = try makeStore()
        try store.keep(try write("urls", list(), in: store))
        let copy = try #require(store.open(url))
        var confirmed = list()
        confirmed.validatedAt = Timestamp(milliseconds: 99)
        _ = try #require(try store.replace(copy, by: confirmed))
        let read = try #require(store.open(url))
        #expect(read.list.validatedAt == Timestamp(milliseconds: 99))
        #expect(try text(of: read) == "urls")
    }

    @Test func aDiscardedListCanBeReadAndReplacesNothing() throws {
        let store = try makeStore()
        try store.keep(try write("old", list(), in: store))
        let new = try write("new", list(), in: store)
        try store.discard(new)
        #expect(try text(of: new) == "new")
        #expect(try text(of: #require(store.open(url))) == "old")
    }

    /// Each damage to the file, and to the folder, is as good as no copy.
    @Test(arguments: ["cut", "longer", "head", "empty", "folder", "link", "other"])
    func aDamagedListIsNone(damage: String) throws {
        let store = try makeStore()
        try store.keep(try write("urls", list(), in: store))
        let lists = folder.path + "/lists"
        let name = try #require(try FileManager.default.contentsOfDirectory(atPath: lists).first)
        let path = lists + "/" + name
        let bytes = try Data(contentsOf: URL(filePath: path))
        try FileManager.default.removeItem(atPath: path)
        let place = URL(filePath: path)
        switch damage {
        case "cut": try bytes.dropLast().write(to: place)
        case "longer": try (bytes + [0]).write(to: place)
        case "head": try Data(bytes.dropFirst()).write(to: place)
        case "empty": try Data().write(to: place)
        case "folder":
            try FileManager.default.createDirectory(
                atPath: path, withIntermediateDirectories: false)
        case "link":
            try bytes.write(to: URL(filePath: folder.path + "/x"))
            try FileManager.default.createSymbolicLink(
                atPath: path, withDestinationPath: "../x")
        default:
            let text = String(decoding: bytes, as: UTF8.self)
            try Data(text.replacing("list.txt", with: "other.txt").utf8).write(to: place)
        }
        #expect(store.open(url) == nil)
    }

    @Test func unusedListsAreRemoved() throws {
        let store = try makeStore()
        try store.keep(try write("urls", list(), in: store))
        let now = Timestamp(milliseconds: Int64(Date.now.timeIntervalSince1970 * 1000))
        try store.removeUnused(at: now.advanced(by: ListStore.lifetime - .seconds(60)))
        #expect(store.open(url) != nil)
        try store.removeUnused(at: now.advanced(by: ListStore.lifetime + .seconds(60)))
        #expect(store.open(url) == nil)
    }

    @Test func theLeastRecentlyUsedListsMakeRoom() throws {
        let store = try makeStore()
        let now = Timestamp(milliseconds: Int64(Date.now.timeIntervalSince1970 * 1000))
        let urls = (0..<4).map { "https://example.com/\($0)" }
        let text = String(repeating: "x", count: 10_000)
        for (age, url) in urls.enumerated() {
            let file = try write(text, list(of: url), in: store)
            var times = timespec()
            times.tv_sec = Int(now.milliseconds / 1000) - 60 * age
            #expect(futimens(file.descriptor, [times, times]) == 0)
            try store.keep(file)
        }
        try store.removeUnused(at: now, maximumSize: ByteCount(25_000))
        #expect(urls.map { store.open($0) != nil } == [true, true, false, false])
    }

    @Test func oddFilesDoNotStopTheRemoval() throws {
        let store = try makeStore()
        try store.keep(try write("urls", list(), in: store))
        let lists = folder.path + "/lists"
        for name in ["late", "early", "old"] {
            try Data().write(to: URL(filePath: "\(lists)/\(name)"))
        }
        try FileManager.default.createDirectory(
            atPath: lists + "/folder", withIntermediateDirectories: false)
        for (name, seconds) in [
            ("late", Int.max), ("early", Int.min), ("old", 0), ("folder", 0),
        ] {
            var time = timespec()
            time.tv_sec = seconds
            utimensat(AT_FDCWD, "\(lists)/\(name)", [time, time], 0)
        }
        let now = Timestamp(milliseconds: Int64(Date.now.timeIntervalSince1970 * 1000))
        try store.removeUnused(at: now)
        #expect(store.open(url) != nil)
        let left = try FileManager.default.contentsOfDirectory(atPath: lists)
        #expect(!left.contains("old") && left.contains("folder"), "\(left)")
    }

    /// Validators may be longer than most lists.
    @Test func aLongHeadIsRead() throws {
        let store = try makeStore()
        let tag = "\"\(String(repeating: "e", count: 299_000))\""
        try store.keep(try write("urls", list(StoredResponse(entityTag: tag)), in: store))
        #expect(store.open(url)?.list.response.entityTag == tag)
    }
}
