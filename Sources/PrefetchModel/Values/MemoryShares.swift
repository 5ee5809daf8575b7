/// The division of `--memory`: a quarter for bodies that arrive or wait, the rest for pixels.
///
/// The pools are separate. If decoding could use the bodies' memory, all workers might wait for
/// memory that only they can free.
package enum MemoryShares {
    package static func bodies(of memory: ByteCount) -> ByteCount { ByteCount(memory.bytes / 4) }

    package static func pixels(of memory: ByteCount) -> ByteCount {
        ByteCount(memory.bytes - bodies(of: memory).bytes)
    }

    /// The smallest `--memory` value in whole mebibytes with `bytes` for pixels beside a body:
    /// `297MiB`. Nil if that overflows.
    package static func text(ofMemoryForPixels bytes: Int, beside bodyBytes: Int) -> String? {
        func mebibytes(_ bytes: Int, _ unit: Int) -> Int {
            bytes / unit + (bytes % unit == 0 ? 0 : 1)
        }
        let (both, overflows) = bytes.addingReportingOverflow(bodyBytes)
        let most = max(
            mebibytes(bytes, pixels(of: .mebibytes(1)).bytes), mebibytes(both, 1 << 20))
        return !overflows && most <= Int.max >> 20 ? "\(most)MiB" : nil
    }
}
