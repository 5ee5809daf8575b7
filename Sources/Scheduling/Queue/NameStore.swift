/// The host names for the next run, in one array of limited size, since every run reads their
/// table.
struct NameStore: Sendable {
    /// Names, each after the two bytes of its length.
    private var bytes: [UInt8] = []

    private static let capacity = 16 << 20

    /// Adds a name.
    ///
    /// - Returns: none when there is no room.
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
