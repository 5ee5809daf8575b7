import CacheStorage
import Foundation
import PrefetchModel
import Testing

@testable import Upkeep

@Suite(.timeLimit(.minutes(15)))
struct CacheVerificationTests {
    private func withCatalog(_ body: (CacheCatalog) throws -> Void) throws {
        let path = FileManager.default.temporaryDirectory
            .appending(path: "prefetch-verification-\(UUID().uuidString)").path
        defer { try? FileManager.default.removeItem(atPath: path) }
        let cache = try OpenCache.open(path: path, waiting: .upTo(.seconds(30)))
        try #require(cache).synchronize()
        try body(CacheCatalog(directory: CacheDirectory(path: path, access: .readOnly)))
    }

    private var extent: CacheVerification.Extent {
        CacheVerification.Extent(at: Timestamp(seconds: 1_800_000_000))
    }

    @Test func stoppedVerificationReportsItsProgress() throws {
        try withCatalog { catalog in
            let verification = try CacheVerification(reading: catalog, extent)
            var isFirst = true
            let totals = try verification.run { event in
                if isFirst { #expect(verification.stop()) }
                isFirst = false
            }
            #expect((1...256).contains(totals.folders) && !totals.isComplete)
        }
    }

    @Test func stopBeforeTheFirstFolderReturnsFalse() throws {
        try withCatalog { catalog in
            let verification = try CacheVerification(reading: catalog, extent)
            #expect(!verification.stop())
            let totals = try verification.run { _ in }
            #expect(totals.folders == 0 && !totals.isComplete)
        }
    }

    /// Each call makes progress, however little time it has, and the last one finishes.
    @Test func passedDeadlineStillChecksOneFolder() throws {
        try withCatalog { catalog in
            var extent = extent
            extent.deadline = .now
            for place in 250..<256 {
                extent.finishedFolders = place
                let totals = try CacheVerification(reading: catalog, extent).run { _ in }
                #expect(totals.folders == place + 1 && !totals.isComplete)
            }
            extent.finishedFolders = 256
            let totals = try CacheVerification(reading: catalog, extent).run { _ in }
            #expect(totals.folders == 256 && totals.isComplete)
        }
    }
}
