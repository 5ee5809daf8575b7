/// Values that come and go, by an index that stays: what is removed leaves its place to the next.
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

    /// Gives the place of an element to the next one; the element stays there until then.
    mutating func remove(_ index: Int) {
        free.append(UInt32(index))
    }

    subscript(index: Int) -> Element {
        _read { yield elements[index] }
        _modify { yield &elements[index] }
    }
}

/// A reference into a ``Pool``, or none, in four bytes.
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
