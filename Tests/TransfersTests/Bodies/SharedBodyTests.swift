import Glibc
import Testing

@testable import Transfers

/// Large bodies in memory that another process can read.
@Suite(.timeLimit(.minutes(1)))
struct SharedBodyTests {
    private static func fill(_ body: Body, _ pieces: Int, of piece: [UInt8]) {
        for _ in 0..<pieces {
            let size = body.grownSize(adding: piece.count)
            guard case .granted = body.reserveCapacity(size, by: .ordinary) else {
                Issue.record("no memory")
                return
            }
            piece.withUnsafeBytes { body.append($0) }
        }
    }

    private static let piece = (0..<100_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }

    @Test func bytesStayWhileBodyGrows() throws {
        let budget = BodyBudget(capacity: .max, sharedBodies: 1) {}
        let body = Body(budget: budget)
        SharedBodyTests.fill(body, 40, of: SharedBodyTests.piece)
        let expected = Array(repeating: SharedBodyTests.piece, count: 40).flatMap(\.self)
        #expect(body.withUnsafeBytes { $0.elementsEqual(expected) })
        let descriptor = try #require(body.sealedDescriptor)
        var read = [UInt8](repeating: 0, count: expected.count)
        #expect(
            read.withUnsafeMutableBytes { pread(descriptor, $0.baseAddress, $0.count, 0) }
                == read.count)
        #expect(read == expected)
        // It can no longer change.
        #expect(pwrite(descriptor, read, 1, 0) == -1 && errno == EPERM)
        #expect(ftruncate(descriptor, 1) == -1 && errno == EPERM)
        let map = mmap(nil, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0)
        #expect(map == MAP_FAILED)
    }

    @Test func onlyLargeBodiesUpToTheLimitAreShared() {
        let budget = BodyBudget(capacity: .max, sharedBodies: 1) {}
        let small = Body(budget: budget)
        SharedBodyTests.fill(small, 3, of: SharedBodyTests.piece)
        #expect(small.sealedDescriptor == nil)
        var first: Body? = Body(budget: budget)
        if let first { SharedBodyTests.fill(first, 12, of: SharedBodyTests.piece) }
        #expect(first?.sealedDescriptor != nil)
        let second = Body(budget: budget)
        SharedBodyTests.fill(second, 12, of: SharedBodyTests.piece)
        #expect(second.sealedDescriptor == nil)
        first = nil
        let third = Body(budget: budget)
        SharedBodyTests.fill(third, 12, of: SharedBodyTests.piece)
        #expect(third.sealedDescriptor != nil)
    }
}
