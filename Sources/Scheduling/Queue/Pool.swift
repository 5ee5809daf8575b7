/// Values with stable indices; the index of a removed value is reused.
struct Pool<Element: Sendable>: Sendable {
    private var elements: [Element] = []
    private var free: [UInt32] = []

    var count: Int { elements.count - free.count }

    mutating func insert(_ element: Element) -> Int {
        guard let index = free.popLast() else {
            elements.append(element)
            return elements.count - 1
        }
        elements[Int(index)] = element
        return Int(index)
    }

    /// Frees the index of an element; the element stays there until it is reused.
    mutating func remove(_ index: Int) {
        free.append(UInt32(index))
    }

    subscript(index: Int) -> Element {
        _read { yield elements[index] }
        _modify { yield &elements[index] }
    }
}

/// An optional index into a ``Pool``, in four bytes.
struct PoolIndex: Hashable, Sendable {
    private let number: UInt32

    static let none = PoolIndex(number: 0)

    init(_ index: Int) {
        self.init(number: UInt32(index) + 1)
    }

    private init(number: UInt32) {
        self.number = number
    }

    var index: Int? { number == 0 ? nil : Int(number) - 1 }
}

/// The host names for the next run, in one array of limited size, since every run reads their
/// table.
struct NameStore: Sendable {
    /// Names, each after the two bytes of its length.
    private var bytes: [UInt8] = []

    private static let capacity = 16 << 20

    /// Adds a name; returns none when there is no room.
    mutating func insert(_ name: String) -> PoolIndex {
        let count = name.utf8.count
        guard count <= UInt16.max, bytes.count + count + 2 <= NameStore.capacity else {
            return .none
        }
        let place = bytes.count
        withUnsafeBytes(of: UInt16(count).littleEndian) { bytes += $0 }
        bytes += name.utf8
        return PoolIndex(place)
    }

    subscript(place: PoolIndex) -> String? {
        guard let start = place.index else { return nil }
        let count = Int(bytes[start]) | Int(bytes[start + 1]) << 8
        return String(decoding: bytes[(start + 2)..<(start + 2 + count)], as: UTF8.self)
    }
}
