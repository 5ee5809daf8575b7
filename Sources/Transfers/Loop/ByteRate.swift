import PrefetchModel

/// The transfers of a loop that wait for a ``RateLimit``.
///
/// A transfer takes bytes while the limit has credit, and is paused otherwise. Transfers beyond a
/// number wait before their start: their bodies would fill the buffers of sockets, and so arrive
/// faster than the limit. The number grows while credit is left over, as with distant hosts,
/// twofold until the first pause, and halves with pauses. The origin that has received least is the
/// next to resume or to start.
///
/// Used on the loop's thread only.
final class ByteRate {
    private let limit: RateLimit
    private var paused: [String: [ActiveTransfer]] = [:]
    /// Admitted transfers that have not started.
    private var held: [String: [TransferAttempt]] = [:]
    /// The bytes that each origin has received, at least ``floor``: an origin cannot save up.
    private var received: [String: Double] = [:]
    private var floor = 0.0
    /// The limit of running transfers.
    private var mostRunning = ByteRate.leastTransfers
    private var nextTick: ContinuousClock.Instant
    private var hasPaused = false
    private var hasPausedSinceTick = false

    private static let leastTransfers = 2
    private static let mostTransfers = 1024
    private static let tick = Duration.milliseconds(100)
    /// Origins without a waiting transfer are forgotten beyond this number.
    private static let keptOrigins = 1024

    init(_ limit: RateLimit) {
        self.limit = limit
        nextTick = .now + ByteRate.tick
    }

    /// The size of sockets' buffers: a sixteenth of a second, 16 KiB to 1 MiB. What they hold has
    /// arrived, although no transfer has taken it.
    var receiveBufferBytes: Int32 {
        Int32(min(max(limit.bytesPerSecond / 16, 16_384), 1_048_576))
    }

    // MARK: Bytes

    /// Whether a transfer may take any number of bytes.
    func mayTake(at now: ContinuousClock.Instant) -> Bool { limit.credit(at: now) > 0 }

    func take(_ count: Int, of origin: String) {
        limit.take(count)
        received[origin] = max(received[origin] ?? 0, floor) + Double(count)
    }

    // MARK: Waiting transfers

    var isAnyWaiting: Bool { !paused.isEmpty || !held.isEmpty }

    func pause(_ transfer: ActiveTransfer, of origin: String) {
        paused[origin, default: []].append(transfer)
        hasPaused = true
        hasPausedSinceTick = true
    }

    func hold(_ attempt: TransferAttempt) {
        held[attempt.request.url.origin, default: []].append(attempt)
    }

    func remove(_ transfer: ActiveTransfer, of origin: String) {
        guard let index = paused[origin]?.firstIndex(where: { $0 === transfer }) else { return }
        paused[origin]?.remove(at: index)
        if paused[origin]?.isEmpty == true { paused[origin] = nil }
    }

    func takeHeld() -> [TransferAttempt] {
        defer { held = [:] }
        return held.values.flatMap(\.self)
    }

    /// Removes and returns the paused transfer to resume; nil without credit, or if none is paused.
    func nextPaused(at now: ContinuousClock.Instant) -> ActiveTransfer? {
        guard !paused.isEmpty, mayTake(at: now) else { return nil }
        return removeNext(from: &paused)
    }

    /// Removes and returns the transfer to start beside `running` ones; nil if none may start.
    func nextHeld(beside running: Int, at now: ContinuousClock.Instant) -> TransferAttempt? {
        adjust(at: now)
        guard !held.isEmpty, running < mostRunning else { return nil }
        return removeNext(from: &held)
    }

    private func removeNext<Value>(from waiting: inout [String: [Value]]) -> Value? {
        let next = waiting.keys.min { (received[$0] ?? 0, $0) < (received[$1] ?? 0, $1) }
        guard let next, var values = waiting.removeValue(forKey: next) else { return nil }
        floor = max(floor, received[next] ?? 0)
        if received.count > ByteRate.keptOrigins + 2 * waiting.count {
            received = received.filter { $0.value > floor }
        }
        let value = values.removeFirst()
        if !values.isEmpty { waiting[next] = values }
        return value
    }

    /// Changes the number of transfers, once a tick.
    private func adjust(at now: ContinuousClock.Instant) {
        guard nextTick <= now else { return }
        nextTick = now + ByteRate.tick
        if hasPausedSinceTick {
            mostRunning = max(ByteRate.leastTransfers, mostRunning / 2)
        } else if !held.isEmpty, limit.isIdle(at: now) {
            mostRunning = min(
                hasPaused ? mostRunning + 1 : 2 * mostRunning, ByteRate.mostTransfers)
        }
        hasPausedSinceTick = false
    }

    /// The time until a waiting transfer may continue.
    func wait(at now: ContinuousClock.Instant) -> Duration {
        let credit = paused.isEmpty ? 0 : limit.credit(at: now)
        guard paused.isEmpty || credit > 0 else {
            return .seconds(-credit / limit.bytesPerSecond) + .milliseconds(1)
        }
        return max(.zero, nextTick - now)
    }
}
