import CacheStorage
import Foundation
import PrefetchModel
import Testing

@testable import Pipeline

@Suite(.timeLimit(.minutes(15)))
struct ListFetcherTests {
    private let url = RequestURL(normalized: "http://127.0.0.1:9/index.xml")

    private func withFetcher(
        refresh: RefreshMode = .stale, _ body: (ListFetcher, ListStore) throws -> Void
    ) throws {
        let folder = FileManager.default.temporaryDirectory
            .appending(path: "prefetch-lists-\(UUID().uuidString)").path
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let directory = try CacheDirectory(path: folder, access: .readWrite)
        var configuration = RunConfiguration(userAgent: "t", manifests: [], codecWorkers: 1)
        configuration.hosts.maximumRetries = 0
        configuration.lifetimes.refresh = refresh
        let fetcher = ListFetcher(configuration, in: directory) { Timestamp(seconds: 1_000_000) }
        try body(fetcher, ListStore(directory))
    }

    private func keepCopy(
        in store: ListStore, isPublic: Bool, expiresAt: Timestamp = .distantFuture
    ) throws {
        let list = StoredList(
            url: url.text, responseURL: url.text, response: StoredResponse(),
            validatedAt: Timestamp(seconds: 999_990), expiresAt: expiresAt, isPublic: isPublic)
        let written = Array("http://a.b/".utf8).withUnsafeBytes { bytes in
            Result { () throws(StorageError) in try store.write(list, bytes) }
        }
        try store.keep(try written.get())
    }

    /// The address is refused before a connection is tried.
    @Test func aSitemapOfAPublicIndexIsNotRequestedFromThisMachine() throws {
        try withFetcher { fetcher, _ in
            let refused = #expect(throws: MissingList.self) {
                try fetcher.open(ListRequest(url, by: .redirectedFromPublic), allowsEmpty: false) {
                    _, _ in 1
                }
            }
            #expect(refused?.failure.reason == .refusedAddress)
            let failed = #expect(throws: MissingList.self) {
                try fetcher.open(ListRequest(url), allowsEmpty: false) { _, _ in 1 }
            }
            #expect(failed?.failure.reason == .connect)
        }
    }

    @Test(arguments: [true, false])
    func aCopyRemembersWhetherItsIndexIsPublic(isPublic: Bool) throws {
        try withFetcher { fetcher, store in
            try keepCopy(in: store, isPublic: isPublic)
            let opened = try fetcher.open(ListRequest(url), allowsEmpty: false) { _, _ in 1 }
            guard case .stored = opened.source else { throw Failure(.internal, "\(opened)") }
            #expect(
                opened.ruleOfSitemaps
                    == (isPublic ? .redirectedFromPublic : .listed(allowsLinkLocal: false)))
        }
    }

    @Test(arguments: RefreshMode.allCases, [true, false])
    func aCopyIsUsedWithoutARequest(refresh: RefreshMode, isFresh: Bool) throws {
        try withFetcher(refresh: refresh) { fetcher, store in
            try keepCopy(
                in: store, isPublic: false,
                expiresAt: isFresh ? .distantFuture : Timestamp(seconds: 999_995))
            let opened = try fetcher.open(ListRequest(url), allowsEmpty: false) { _, _ in 1 }
            let isUnasked = refresh == .none || refresh == .stale && isFresh
            switch opened.source {
            case .stored: #expect(isUnasked)
            case .copy(let failure): #expect(!isUnasked && failure.reason == .connect)
            default: Issue.record("\(opened)")
            }
        }
    }
}
