import PrefetchModel
import TestSupport
import Testing
import Transfers

@testable import Buckets

/// The settings of a run that hold for buckets, and the others.
@Suite(.timeLimit(.minutes(15)))
struct RouteTests {
    private func read(
        _ settings: BucketSettings, at origin: Origin
    ) async throws -> Result<[UInt8], any Error> {
        origin.serve { _ in Response(body: [1]) }
        let storage = try settings.storage(at: origin)
        return try await blocking {
            Result { try storage.bytes(of: "a", limit: .mebibytes(1)) }
        }
    }

    @Test func requestsGoThroughTheProxy() async throws {
        try await withOrigin { proxy in
            var settings = BucketSettings()
            settings.variables["AWS_ENDPOINT_URL_S3"] = "http://bucket.invalid"
            settings.transfers.requests.proxies = ProxySettings(explicit: proxy.url(""))
            let bytes = try await read(settings, at: proxy)
            #expect(try bytes.get() == [1])
            #expect(proxy.snapshot.requests.first?.target == "http://bucket.invalid/b/p/a")
        }
    }

    @Test func certificatesAreVerifiedWithTheAuthoritiesOfARunOrOfTheBucket() async throws {
        let authority = try await TestAuthority.shared()
        try await withOrigin(security: authority.security()) { origin in
            var settings = BucketSettings()
            settings.transfers.requests.verifiesOrigins = false
            let refused = try await read(settings, at: origin)
            #expect(throws: ObjectStorageError.self) { try refused.get() }
            settings.transfers.requests.authorityFile = authority.path
            let ofRun = try await read(settings, at: origin)
            #expect(try ofRun.get() == [1])
            settings.variables["AWS_CA_BUNDLE"] = "\(authority.folder)/own.pem"
            let other = try await read(settings, at: origin)
            #expect(throws: ObjectStorageError.self) { try other.get() }
            settings.transfers.requests.authorityFile = "\(authority.folder)/own.pem"
            settings.variables["AWS_CA_BUNDLE"] = authority.path
            let ofBucket = try await read(settings, at: origin)
            #expect(try ofBucket.get() == [1])
        }
    }

    /// Fields and credentials for origins, and their rule for addresses.
    @Test func rulesForOriginsDoNotApply() async throws {
        try await withOrigin { origin in
            var settings = BucketSettings()
            settings.transfers.requests.fields = [HeaderField(name: "X-Secret", value: "s")]
            settings.transfers.requests.credentials = Credentials(text: "u:p")
            settings.transfers.requests.deniesPrivate = true
            let bytes = try await read(settings, at: origin)
            #expect(try bytes.get() == [1])
            let request = try #require(origin.snapshot.requests.first)
            #expect(request.header("X-Secret") == nil)
            #expect(request.header("Authorization")?.hasPrefix("AWS4-") == true)
        }
    }

    @Test func theRateIsKept() async throws {
        try await withOrigin { origin in
            var settings = BucketSettings()
            settings.transfers.rateLimit = RateLimit(ByteCount(100_000))
            let storage = try settings.storage(at: origin)
            origin.serve { _ in stored() }
            let start = ContinuousClock.now
            let bytes = [UInt8](repeating: 1, count: 300_000)
            try await blocking {
                for name in ["a", "b"] {
                    try storage.put(
                        name, .bytes(bytes), digest: digest(bytes), mediaType: "image/png")
                }
            }
            // The first request may begin at once.
            #expect(.now - start >= .seconds(2))
        }
    }
}
