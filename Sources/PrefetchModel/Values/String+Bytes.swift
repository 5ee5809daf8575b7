extension String {
    /// Calls `body` with the string's UTF-8 without a copy, for native strings. Iterating over the
    /// bytes takes a tenth of the time of iterating over `utf8`.
    package func withBytes<Result>(
        _ body: (UnsafeBufferPointer<UInt8>) throws -> Result
    ) rethrows -> Result {
        if let result = try utf8.withContiguousStorageIfAvailable(body) { return result }
        return try Array(utf8).withUnsafeBufferPointer(body)
    }
}
