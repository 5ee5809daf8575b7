extension String {
    /// Calls `body` with the string's UTF-8, in place, as every string of Swift's own holds it: a
    /// loop over the bytes takes a tenth of what one over `utf8` does.
    package func withBytes<Result>(
        _ body: (UnsafeBufferPointer<UInt8>) throws -> Result
    ) rethrows -> Result {
        if let result = try utf8.withContiguousStorageIfAvailable(body) { return result }
        return try Array(utf8).withUnsafeBufferPointer(body)
    }
}
