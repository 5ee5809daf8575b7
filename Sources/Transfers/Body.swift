import Glibc

/// The bytes of a response's body, in memory that is freed with the last reference.
///
/// It is filled on the transfer loop's thread and handed on when nothing more comes.
/// `@unchecked Sendable`: ``append(_:)`` is called by the loop only, before the body leaves it, and
/// ``fillGap(_:)`` only by the one who has it then, before anybody reads it.
package final class Body: @unchecked Sendable {
    private var storage: UnsafeMutableRawPointer?
    private var capacity = 0
    /// Bytes, those of the gap included.
    package private(set) var count = 0
    /// Bytes at the front that did not arrive with this response, since an earlier one brought
    /// them; there is room for them. Zero when the body can be read.
    package private(set) var gap = 0
    /// What was reserved for this body; given back when it is freed.
    private let budget: BodyBudget
    private(set) var reserved = 0

    init(budget: BodyBudget) {
        self.budget = budget
    }

    deinit {
        free(storage)
        budget.release(reserved)
    }

    /// Makes room for `size` bytes in all, after asking the budget for what that takes; with
    /// `overdraws` it takes the share whether the budget has it or not.
    func reserveCapacity(_ size: Int, overdraws: Bool) -> Room {
        guard size > capacity else { return .granted }
        let wanted = (size + 4095) & ~4095
        let missing = wanted - reserved
        if missing > 0 {
            if overdraws {
                budget.overdraw(missing)
            } else if !budget.reserve(missing) {
                return .overBudget(missing: missing)
            }
            reserved = wanted
        }
        guard let grown = realloc(storage, wanted) else { return .outOfMemory }
        storage = grown
        capacity = wanted
        return .granted
    }

    enum Room {
        case granted
        /// The budget has no share of so many bytes now; its next release calls back.
        case overBudget(missing: Int)
        /// The system gives no memory.
        case outOfMemory
    }

    /// Has the body begin with bytes that come by ``fillGap(_:)``.
    ///
    /// - Precondition: nothing has been appended.
    func leaveGap(_ count: Int) {
        precondition(self.count == 0, "a gap is at the front")
        self.count = count
        gap = count
    }

    /// Has `work` write the missing bytes.
    ///
    /// - Parameter work: gets exactly the gap, and returns whether it filled it.
    /// - Returns: the same; with false the gap is still there.
    /// - Throws: what `work` throws; the gap is still there, too.
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

    /// The size to make room for before `added` more bytes are appended: half as much again as
    /// now, so that the copies stay linear in the size.
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

    /// - Precondition: no gap is left.
    package func withUnsafeBytes<Value, Failure: Error>(
        _ work: (UnsafeRawBufferPointer) throws(Failure) -> Value
    ) throws(Failure) -> Value {
        precondition(gap == 0, "a body with a gap is not read")
        return try work(UnsafeRawBufferPointer(start: storage, count: count))
    }
}
