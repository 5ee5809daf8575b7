import Foundation
import Glibc
import PrefetchModel
import TestSupport
import Testing

@testable import Transfers

/// The connections of one origin over TLS: their number, their sessions and their authorities.
@Suite(.timeLimit(.minutes(15)))
struct OriginConnectionTests {
    private static func configuration(
        file: String, folder: String? = nil
    ) -> TransferConfiguration {
        var configuration = TransferConfiguration(userAgent: "prefetch-tests")
        configuration.requests.authorityFile = file
        configuration.requests.authorityFolder = folder
        return configuration
    }

    /// Requests `paths`, `width` of them at a time, and returns the failures.
    private static func failures(
        _ paths: [String], of origin: Origin, atOnce width: Int, _ loop: RunningLoop
    ) async -> [String] {
        await withTaskGroup(of: String?.self) { group in
            var failures: [String?] = []
            for (index, path) in paths.enumerated() {
                if index >= width, let failure = await group.next() { failures.append(failure) }
                group.addTask {
                    let end = await loop.get(origin.url(path, host: "localhost"))
                    return end.status == 200 ? nil : "\(path): \(end.result)"
                }
            }
            for await failure in group { failures.append(failure) }
            return failures.compactMap(\.self)
        }
    }

    /// Requests `count` images from an origin over HTTP/2, `width` at a time, and returns the
    /// origin's record. Expects that no request fails, and that each image is requested once. The
    /// origin answers nothing before this many requests are in flight.
    private static func snapshot(
        _ http2: OriginSecurity.HTTP2, images count: Int, atOnce width: Int, held: Int = 0
    ) async throws -> Origin.Snapshot {
        let authority = try await TestAuthority.shared()
        return try await withOrigin(security: authority.security(http2: http2)) { origin in
            let paths = (0..<count).map { "/\($0)" }
            let gate = Gate()
            origin.serve { _ in
                var response = Response.image([1, 2, 3], gate: gate)
                response.delayBeforeHead = .milliseconds(5)
                return response
            }
            try await withLoop(configuration(file: authority.path)) { loop in
                async let failures = failures(paths, of: origin, atOnce: width, loop)
                try await origin.wait(for: "\(held) in flight") { $0.inFlight >= held }
                gate.open()
                #expect(await failures == [])
            }
            let snapshot = origin.snapshot
            #expect(snapshot.paths.sorted() == paths.sorted())
            return snapshot
        }
    }

    /// Requests eight images that the origin sends together once all are requested.
    private static func requestEightTogether(
        _ origin: Origin, _ gate: Gate, _ loop: RunningLoop
    ) async throws {
        async let failures = failures((0..<8).map { "/\($0)" }, of: origin, atOnce: 8, loop)
        try await origin.wait(for: "eight requests") { $0.inFlight == 8 }
        gate.open()
        #expect(await failures == [])
    }

    // MARK: HTTP/2

    @Test(arguments: [(8, 128), (60, 10), (200, 100), (200, 128), (200, 10)])
    func streamsShareTwoConnections(atOnce: Int, streams: Int) async throws {
        let snapshot = try await Self.snapshot(
            .init(maximumConcurrentStreams: streams), images: 3 * atOnce, atOnce: atOnce,
            held: min(atOnce, streams))
        #expect(snapshot.connections <= 2)
        #expect(snapshot.peakInFlight >= min(atOnce, streams))
    }

    @Test(arguments: [(7, 8), (25, 60), (100, 200)])
    func aGoAwayLosesAndRepeatsNoRequest(requests: Int, atOnce: Int) async throws {
        let snapshot = try await Self.snapshot(
            .init(requestsBeforeGoAway: requests), images: 4 * atOnce, atOnce: atOnce)
        // Two, and one that the origin does not know to be closed.
        #expect(snapshot.peakConnections <= 3)
    }

    // MARK: HTTP/1.1

    @Test func http1HasAConnectionForEachTransfer() async throws {
        let authority = try await TestAuthority.shared()
        let security = authority.security(http2: nil)
        try await withOrigin(security: security) { origin in
            let gate = Gate()
            origin.serve("/first", .image([1, 2, 3]))
            origin.serve { _ in .image([1, 2, 3], gate: gate) }
            try await withLoop(Self.configuration(file: authority.path)) { loop in
                #expect(await loop.get(origin.url("/first", host: "localhost")).status == 200)
                try await Self.requestEightTogether(origin, gate, loop)
            }
            #expect(origin.snapshot.connections == 8)
            // All but the first resume its session, whichever handle has it.
            #expect(origin.snapshot.resumedSessions > 0)
        }
    }

    // MARK: The first connection

    @Test(arguments: [Origin.Accepting.silence, .closed])
    func waitingTransfersFailWithTheFirstConnection(accepting: Origin.Accepting) async throws {
        let authority = try await TestAuthority.shared()
        try await withOrigin(accepting: accepting) { origin in
            var configuration = Self.configuration(file: authority.path)
            configuration.limits.connectTimeout = .seconds(1)
            let start = ContinuousClock.now
            try await withLoop(configuration) { loop in
                await withTaskGroup(of: FailureReason?.self) { group in
                    for _ in 0..<8 {
                        group.addTask {
                            let url = "https://localhost:\(origin.port)/a"
                            return await loop.get(url).failure?.reason
                        }
                    }
                    for await reason in group { #expect(reason == .connect || reason == .tls) }
                }
            }
            // One after another would take eight seconds.
            #expect(ContinuousClock.now - start < .seconds(5))
        }
    }

    @Test func cancellingDeliversWaitingTransfers() async throws {
        let authority = try await TestAuthority.shared()
        try await withOrigin(accepting: .silence) { origin in
            try await withLoop(Self.configuration(file: authority.path)) { loop in
                async let ends = withTaskGroup(of: Bool.self) { group in
                    for _ in 0..<5 {
                        group.addTask {
                            let end = await loop.get("https://localhost:\(origin.port)/a")
                            if case .cancelled = end.result { return true }
                            return false
                        }
                    }
                    return await group.reduce(into: []) { $0.append($1) }
                }
                try await eventually("a connection") { origin.snapshot.connections == 1 }
                loop.cancelAll()
                #expect(await ends == [true, true, true, true, true])
            }
        }
    }

    // MARK: Authorities

    @Test func readsTheFileOfAuthoritiesOnce() async throws {
        let authority = try await TestAuthority.shared()
        let folder = try TemporaryFolder()
        let file = folder.path + "/ca.pem"
        try FileManager.default.copyItem(atPath: authority.path, toPath: file)
        let watch = try OpenCount(of: file)
        try await withOrigin(security: authority.security()) { origin in
            let gate = Gate()
            origin.serve { _ in .image([1, 2, 3], gate: gate) }
            let configuration = Self.configuration(file: file, folder: folder.path)
            try await withLoop(configuration) { loop in
                try await Self.requestEightTogether(origin, gate, loop)
            }
            #expect(origin.snapshot.connections == 8)
        }
        #expect(watch.count() == 1)
    }

    @Test func trustsAuthoritiesOfTheFolderAlone() async throws {
        let authority = try await TestAuthority.shared()
        let folder = try TemporaryFolder()
        try FileManager.default.copyItem(
            atPath: authority.path, toPath: folder.path + "/ca.pem")
        let rehash = try await Command(
            executable: "/usr/bin/openssl", arguments: ["rehash", folder.path],
            environment: ["PATH": "/usr/bin:/bin"], folder: folder.path
        ).run()
        #expect(rehash.status == 0, "\(rehash)")
        let other = authority.folder + "/own.pem"
        try await withOrigin(security: authority.security()) { origin in
            let gate = Gate()
            origin.serve { _ in .image([1, 2, 3], gate: gate) }
            let configuration = Self.configuration(file: other, folder: folder.path)
            try await withLoop(configuration) { loop in
                try await Self.requestEightTogether(origin, gate, loop)
            }
            // Only the first one was tried with the file.
            #expect(origin.snapshot.connections == 9)
        }
        // The folder replaces nothing but an unknown issuer.
        for certificate in [TestAuthority.Certificate.expired, .other] {
            try await withOrigin(security: authority.security(certificate)) { origin in
                let configuration = Self.configuration(file: other, folder: folder.path)
                try await withLoop(configuration) { loop in
                    let end = await loop.get(origin.url("/a", host: "localhost"))
                    #expect(end.failure?.reason == .tls)
                    #expect(end.failure?.persistence == .untrusted)
                }
            }
        }
    }
}

/// A folder that is removed with its owner.
private final class TemporaryFolder {
    let path: String

    init() throws {
        path =
            FileManager.default.temporaryDirectory.appending(
                path: "prefetch-authorities-\(UUID().uuidString)"
            ).path
        try FileManager.default.createDirectory(
            atPath: path, withIntermediateDirectories: false)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }
}

/// Counts how often a file is opened (inotify(7)).
private final class OpenCount {
    private let descriptor: Int32
    /// The kernel joins equal events that follow one another; each opening is followed by a close.
    private static let mask = UInt32(IN_OPEN) | UInt32(IN_CLOSE_NOWRITE)

    init(of path: String) throws {
        descriptor = inotify_init1(Int32(IN_NONBLOCK))
        try #require(descriptor >= 0)
        try #require(inotify_add_watch(descriptor, path, OpenCount.mask) >= 0)
    }

    deinit { close(descriptor) }

    func count() -> Int {
        // The events of a watched file have no name, so that all have one size.
        var events = [inotify_event](repeating: inotify_event(), count: 1000)
        let size = MemoryLayout<inotify_event>.stride
        let bytes = events.withUnsafeMutableBytes { read(descriptor, $0.baseAddress, $0.count) }
        return events.prefix(max(0, bytes) / size).count { $0.mask & UInt32(IN_OPEN) != 0 }
    }
}
