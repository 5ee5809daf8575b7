/// Values by entry, zero where none was set.
///
/// Memory is allocated in chunks of 2¹⁶ values where values are set: growing copies nothing, and
/// unused chunks cost nothing.
package struct ChunkedArray<Value: FixedWidthInteger> {
    private var chunks: [[Value]] = []

    package init() {}

    private static var chunkBits: Int { 16 }
    private static var chunkCount: Int { 1 << chunkBits }

    package subscript(index: Int) -> Value {
        get {
            let chunk = index >> Self.chunkBits
            guard chunk < chunks.count, !chunks[chunk].isEmpty else { return 0 }
            return chunks[chunk][index & (Self.chunkCount - 1)]
        }
        set {
            let chunk = index >> Self.chunkBits
            while chunks.count <= chunk { chunks.append([]) }
            if chunks[chunk].isEmpty {
                chunks[chunk] = [Value](repeating: 0, count: Self.chunkCount)
            }
            chunks[chunk][index & (Self.chunkCount - 1)] = newValue
        }
    }
}
