import Glibc
package import PrefetchModel
import Threading

/// The bytes of a response's body, in memory that is freed with the last reference.
///
/// `@unchecked Sendable`: the transfer loop's thread fills it, and hands it on when it is
/// complete. Only the loop calls ``append(_:)``, before the body leaves it. Only the one next
/// owner calls ``fillGap(_:)``, before any reader, and ``reserve(derivedBytes:)``.
package final class Body: @unchecked Sendable {
    private var storage: UnsafeMutableRawPointer?
    /// The memory at `storage`, if it is not the heap's.
    private var shared: SharedMemory?
    private var capacity = 0
    /// Bytes, including the gap.
    package private(set) var count = 0
    /// Bytes at the front that an earlier response brought. The body can be read when it is zero.
    package private(set) var gap = 0
    package var extent: BodyExtent { (count, gap) }
    /// Bytes reserved in the budget; released when the body is freed.
    private let budget: BodyBudget
    private(set) var reserved = 0

    init(budget: BodyBudget) {
        self.budget = budget
    }

    deinit {
        if shared == nil { free(storage) } else { budget.releaseShare() }
        budget.release(reserved)
    }

    /// Smaller bodies are copied for another process: the system calls of sharing take longer.
    private static let leastShared = 1 << 20

    /// A transfer's claim to the budget.
    enum MemoryClaim {
        /// Older transfers wait for memory.
        case behindOthers
        case ordinary
        /// It may exceed the budget, for the run to continue.
        case overdraft
    }

    /// Makes room for `size` bytes in all, and reserves them in the budget.
    func reserveCapacity(_ size: Int, by claim: MemoryClaim) -> Reservation {
        guard size > capacity else { return .granted }
        let wanted = (size + 4095) & ~4095
        let missing = wanted - reserved
        if missing > 0 {
            switch claim {
            case .behindOthers: return .overBudget(missing: missing)
            case .ordinary:
                guard budget.reserve(missing) else { return .overBudget(missing: missing) }
            case .overdraft: budget.overdraw(missing)
            }
            reserved = wanted
        }
        guard grow(to: wanted) else { return .outOfMemory }
        capacity = wanted
        return .granted
    }

    private func grow(to wanted: Int) -> Bool {
        if let shared {
            if shared.grow(to: wanted) {
                storage = shared.bytes.baseAddress
                return true
            }
            // For example, files are limited (RLIMIT_FSIZE). The heap has room.
            guard let heap = malloc(wanted) else { return false }
            if let storage { memcpy(heap, storage, min(count, capacity)) }
            storage = heap
            self.shared = nil
            budget.releaseShare()
            return true
        }
        if wanted >= Body.leastShared, budget.takeShare() {
            if let memory = SharedMemory("prefetch-body", capacity: wanted) {
                memory.bytes.copyMemory(
                    from: UnsafeRawBufferPointer(start: storage, count: min(count, capacity)))
                free(storage)
                storage = memory.bytes.baseAddress
                shared = memory
                return true
            }
            budget.releaseShare()
        }
        guard let grown = realloc(storage, wanted) else { return false }
        storage = grown
        return true
    }

    /// The descriptor of its memory, from which another process can read but not write it; nil for
    /// a small body, and where the system has no such memory. No gap is filled afterwards.
    package private(set) lazy var sealedDescriptor: Int32? =
        shared.flatMap { $0.seal(isFinal: true) ? $0.descriptor : nil }

    /// Counts an image that a filter made, even beyond the budget, until the body is released.
    package func reserve(derivedBytes: Int) {
        budget.overdraw(derivedBytes)
        reserved += derivedBytes
    }

    enum Reservation {
        case granted
        /// The budget lacks this many bytes; its next release calls back.
        case overBudget(missing: Int)
        case outOfMemory
    }

    /// Leaves a gap at the front, for ``fillGap(_:)``.
    ///
    /// - Precondition: nothing has been appended.
    func leaveGap(_ count: Int) {
        precondition(self.count == 0, "a gap is at the front")
        self.count = count
        gap = count
    }

    /// Lets `work` write the gap, and returns whether it filled it. Else the gap stays.
    package func fillGap<Failure: Error>(
        _ work: (UnsafeMutableRawBufferPointer) throws(Failure) -> Bool
    ) throws(Failure) -> Bool {
        guard gap > 0 else { return true }
        guard let storage, capacity >= gap,
            try work(UnsafeMutableRawBufferPointer(start: storage, count: gap))
        else { return false }
        gap = 0
        return true
    }

    /// The capacity to reserve before appending `added` bytes: at least half as much again as now,
    /// so that copying stays linear in the size.
    func grownSize(adding added: Int) -> Int {
        let needed = count + added
        return needed <= capacity ? needed : max(needed, capacity + capacity / 2)
    }

    /// - Precondition: there is room.
    func append(_ bytes: UnsafeRawBufferPointer) {
        guard let source = bytes.baseAddress, !bytes.isEmpty else { return }
        guard let storage, count + bytes.count <= capacity else {
            preconditionFailure("room is made before bytes are appended")
        }
        memcpy(storage + count, source, bytes.count)
        count += bytes.count
    }

    /// - Precondition: the gap is filled.
    package func withUnsafeBytes<Value, Failure: Error>(
        _ work: (UnsafeRawBufferPointer) throws(Failure) -> Value
    ) throws(Failure) -> Value {
        precondition(gap == 0, "a body with a gap is not read")
        return try work(UnsafeRawBufferPointer(start: storage, count: count))
    }
}

/// Counts the bytes of bodies in memory, from their first byte until a codec worker releases them.
///
/// It only counts. A transfer without a share pauses, and ``TransferLoop`` makes sure that one of
/// them can always continue. Any thread may call it.
struct BodyBudget: Sendable {
    private struct Reserved {
        var used = 0
        var isAwaited = false
        /// The bodies that may have shared memory, in addition to those that have it.
        var shares: Int
    }

    let capacity: Int
    private let state: Monitor<Reserved>
    /// Called on the releasing thread when a waiting transfer may try again.
    let released: @Sendable () -> Void

    /// `sharedBodies` is the most bodies with memory that other processes can read, and with a
    /// descriptor each.
    init(capacity: Int, sharedBodies: Int = 0, released: @escaping @Sendable () -> Void) {
        self.capacity = capacity
        self.released = released
        state = Monitor(Reserved(shares: sharedBodies))
    }

    func takeShare() -> Bool {
        state.withLock { state in
            guard state.shares > 0 else { return false }
            state.shares -= 1
            return true
        }
    }

    func releaseShare() { state.withLock { $0.shares += 1 } }

    /// Reserves `count` bytes if they all fit. If not, the next release calls back.
    func reserve(_ count: Int) -> Bool {
        state.withLock { state in
            guard state.used + count <= capacity else {
                state.isAwaited = true
                return false
            }
            state.used += count
            return true
        }
    }

    /// Reserves `count` bytes, beyond the capacity if need be.
    func overdraw(_ count: Int) {
        state.withLock { $0.used += count }
    }

    func release(_ count: Int) {
        let isAwaited = state.withLock { state in
            state.used -= count
            defer { state.isAwaited = false }
            return state.isAwaited
        }
        if isAwaited { released() }
    }

    /// The free bytes. The next release calls back, for transfers that need more.
    func awaitedRoom() -> Int {
        state.withLock { state in
            state.isAwaited = true
            return max(0, capacity - state.used)
        }
    }

    var used: Int { state.withLock { $0.used } }
}

/// Has a body judged while it arrives: as soon as that may save bytes, and again each time it has
/// doubled. All judgements together cost no more than two of the whole body.
///
/// A body is not judged while less than ``TransferProgress/drainedBytes`` remain; with unknown
/// length, not before it has as many: reading them is cheaper than a new connection.
struct BodyInspection {
    /// Nil when no further judgement is needed.
    private(set) var judge: BodyJudge?
    /// The length of the whole body, after content decoding; nil if unknown.
    let totalBytes: Int?
    private(set) var nextLook = 1

    /// Judges the received bytes, if it is time.
    ///
    /// - Precondition: the body has no gap.
    /// - Returns: the reason to end the transfer; nil to continue.
    mutating func refusal(of body: Body) -> Failure? {
        guard let judge, body.count >= nextLook,
            (totalBytes.map { $0 - body.count } ?? body.count) > TransferProgress.drainedBytes
        else { return nil }
        nextLook = 2 * body.count
        switch body.withUnsafeBytes({ judge($0, totalBytes) }) {
        case .undecided:
            return nil
        case .accepted:
            self.judge = nil
            return nil
        case .refused(let refusal):
            return refusal
        }
    }
}
