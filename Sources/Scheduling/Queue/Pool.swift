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
