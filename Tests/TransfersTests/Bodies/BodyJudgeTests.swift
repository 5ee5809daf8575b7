import PrefetchModel
import TestSupport
import Testing
import Threading

@testable import Transfers

/// Bodies judged by their beginning.
@Suite(.timeLimit(.minutes(15)))
struct BodyJudgeTests {
    private static let refusal = Failure(.notAnImage, "no image")

    /// Feeds a body in pieces, and returns its length at each judgement.
    private func looks(
        pieces: [Int], total: Int?, accepts: Bool = false
    ) -> [Int] {
        let looks = Monitor<[Int]>([])
        let judge: BodyJudge = { beginning, totalBytes in
            #expect(totalBytes == total)
            looks.withLock { $0.append(beginning.count) }
            return accepts ? .accepted : .undecided
        }
        let body = Body(budget: BodyBudget(capacity: .max) {})
        var inspection = BodyInspection(judge: judge, totalBytes: total)
        for piece in pieces {
            guard case .granted = body.reserveCapacity(body.count + piece, by: .ordinary) else {
                Issue.record("no room")
                return []
            }
            body.append([UInt8](repeating: 0, count: piece))
            #expect(inspection.refusal(of: body) == nil)
        }
        return looks.withLock { $0 }
    }

    @Test func judgesAgainAfterTheBodyHasDoubled() {
        let pieces = [Int](repeating: 16_000, count: 20)
        let doubling = [16_000, 32_000, 64_000, 128_000, 256_000]
        #expect(looks(pieces: pieces, total: 1 << 20) == doubling)
        #expect(looks(pieces: pieces, total: nil) == [80_000, 160_000, 320_000])
        #expect(looks(pieces: pieces, total: 1 << 20, accepts: true) == [16_000])
    }

    @Test func doesNotJudgeNearTheEnd() {
        #expect(looks(pieces: [1_000, 1_000], total: 65_536) == [])
        #expect(looks(pieces: [1_000, 1_000], total: 66_537) == [1_000])
        #expect(looks(pieces: [65_536], total: nil) == [])
        #expect(looks(pieces: [200_000, 99_999], total: 300_000) == [200_000])
    }

    /// Paused bodies are judged, and ended, while they are resumed.
    @Test func refusedBodiesReleaseTheirMemory() async throws {
        var configuration = TransferConfiguration(userAgent: "prefetch-tests")
        configuration.limits.stallTimeout = .seconds(300)
        configuration.bodyBudget = .mebibytes(1)
        try await withOrigin { origin in
            origin.serve(
                "/page", Response(body: [UInt8](repeating: 0x78, count: 1 << 20)))
            origin.serve(
                "/good", Response(body: [UInt8](repeating: 0x79, count: 1 << 20)))
            let judge: BodyJudge = { beginning, _ in
                beginning.first == 0x78 ? .refused(BodyJudgeTests.refusal) : .accepted
            }
            try await withLoop(configuration) { loop in
                try await withThrowingTaskGroup(of: (Int, TransferCompletion).self) { group in
                    for number in 0..<12 {
                        let url = origin.url(number % 4 == 0 ? "/good" : "/page")
                        group.addTask {
                            let completion = await loop.get {
                                TransferRequest(
                                    id: $0, url: RequestURL(parsing: url), judge: judge)
                            }
                            return (number, completion)
                        }
                    }
                    for try await (number, completion) in group {
                        switch completion.result {
                        case .response(_, let body?):
                            #expect(number % 4 == 0)
                            #expect(body.count == 1 << 20)
                        case .refused(let head, let refusal):
                            #expect(number % 4 != 0)
                            #expect(head.status == 200)
                            #expect(refusal == BodyJudgeTests.refusal)
                            #expect(completion.bytesReceived < 1 << 20)
                            #expect(completion.interruptedBody == nil)
                        default:
                            Issue.record("\(completion.result)")
                        }
                    }
                }
            }
        }
    }
}

extension Body {
    fileprivate func append(_ bytes: [UInt8]) { bytes.withUnsafeBytes { append($0) } }
}
