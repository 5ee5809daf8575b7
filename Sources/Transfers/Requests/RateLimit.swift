package import PrefetchModel
import Threading

/// A limit of received bytes per second, which several transfer loops may share.
///
/// A token bucket: bytes are taken while there is credit, and cost credit afterwards. Used from any
/// thread.
package final class RateLimit: Sendable {
    private struct Bucket {
        /// Bytes that may be taken; negative after a chunk that was larger than the rest.
        var credit: Double
        var updatedAt: ContinuousClock.Instant
    }

    let bytesPerSecond: Double
    /// A twentieth of a second.
    private let mostCredit: Double
    private let bucket: Monitor<Bucket>

    package init(_ size: ByteCount) {
        bytesPerSecond = Double(max(1, size.bytes))
        mostCredit = bytesPerSecond / 20
        bucket = Monitor(Bucket(credit: mostCredit, updatedAt: .now))
    }

    /// The bytes that may be taken; zero or less if none.
    func credit(at now: ContinuousClock.Instant) -> Double {
        bucket.withLock { bucket in
            // Another thread's instant may be later.
            let passed = max(.zero, now - bucket.updatedAt)
            bucket.credit = min(bucket.credit + passed / .seconds(1) * bytesPerSecond, mostCredit)
            bucket.updatedAt = max(bucket.updatedAt, now)
            return bucket.credit
        }
    }

    /// Whether no credit has been used for a while.
    func isIdle(at now: ContinuousClock.Instant) -> Bool { credit(at: now) >= mostCredit }

    func take(_ count: Int) {
        bucket.withLock { $0.credit -= Double(count) }
    }
}
