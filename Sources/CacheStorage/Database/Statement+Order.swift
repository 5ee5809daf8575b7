internal import SQLite

extension [Statement.Value] {
    /// Whether the values sort before other ones, in SQLite's order of storage classes and values
    /// ("Datatypes In SQLite", section 4).
    func precedes(_ other: [Statement.Value]) -> Bool {
        for (value, other) in zip(self, other) {
            switch (value, other) {
            case (.integer(let value), .integer(let other)) where value != other:
                return value < other
            case (.text(let value), .text(let other))
            where !value.utf8.elementsEqual(other.utf8):
                return value.utf8.lexicographicallyPrecedes(other.utf8)
            case (.blob(let value), .blob(let other)) where value != other:
                return value.lexicographicallyPrecedes(other)
            default:
                if value.rank != other.rank { return value.rank < other.rank }
            }
        }
        return false
    }
}

extension Statement.Value {
    fileprivate var rank: Int {
        switch self {
        case .null: 0
        case .integer: 1
        case .text: 2
        case .blob: 3
        }
    }
}
