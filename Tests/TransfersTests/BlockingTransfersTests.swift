import PrefetchModel
import TestSupport
import Testing

@testable import Transfers

@Suite(.timeLimit(.minutes(15)))
struct BlockingTransfersTests {
    private static func transfers() -> BlockingTransfers {
        BlockingTransfers(TransferConfiguration(userAgent: "tests")) {
            Timestamp(milliseconds: 1_000)
        }
    }

    @Test func aRequestEnds() async throws {
        try await withOrigin { origin in
            origin.serve("/a", Response(body: [1, 2]))
            let transfers = Self.transfers()
            let transfer = transfers.start(
                TransferRequest(url: RequestURL(parsing: origin.url("/a"))))
            let end = try await blocking { try transfers.wait(for: transfer, until: nil) }
            #expect(end?.status == 200)
            #expect(end?.bytesReceived == 2)
        }
    }

    /// Whether or not the loop has started before.
    @Test(arguments: [true, false])
    func aRequestAfterCancellingIsNotSent(hasRun: Bool) async throws {
        try await withOrigin { origin in
            origin.serve { _ in Response(body: [1]) }
            let transfers = Self.transfers()
            let request = TransferRequest(url: RequestURL(parsing: origin.url("/a")))
            if hasRun {
                let first = transfers.start(request)
                _ = try await blocking { try transfers.wait(for: first, until: nil) }
            }
            transfers.cancelAll()
            let late = transfers.start(request)
            let end = try await blocking { try transfers.wait(for: late, until: nil) }
            guard case .cancelled? = end?.result else {
                Issue.record("\(String(describing: end))")
                return
            }
            #expect(origin.requests.count == (hasRun ? 1 : 0))
        }
    }
}
