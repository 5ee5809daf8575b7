import Glibc

/// The bytes of a response's body, in memory that is freed with the last reference.
///
/// It is filled on the transfer loop's thread and handed on when it is complete.
/// `@unchecked Sendable`: nothing changes it after that, since ``append(_:)`` is called by the
/// loop only, before the body leaves it.
package final class Body: @unchecked Sendable {
    private var storage: UnsafeMutableRawPointer?
    private var capacity = 0
    package private(set) var count = 0
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
                return .overBudget
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
        /// The budget has no share now; its next release calls back.
        case overBudget
        /// The system gives no memory.
        case outOfMemory
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

    package func withUnsafeBytes<Value, Failure: Error>(
        _ work: (UnsafeRawBufferPointer) throws(Failure) -> Value
    ) throws(Failure) -> Value {
        try work(UnsafeRawBufferPointer(start: storage, count: count))
    }
}
