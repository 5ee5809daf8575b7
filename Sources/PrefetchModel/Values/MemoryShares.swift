/// The division of `--memory`: a quarter for bodies that arrive or wait, the rest for pixels.
///
/// The pools are separate. If decoding could use the bodies' memory, all workers might wait for
/// memory that only they can free.
package enum MemoryShares {
    package static func bodies(of memory: ByteCount) -> ByteCount { ByteCount(memory.bytes / 4) }

    package static func pixels(of memory: ByteCount) -> ByteCount {
        ByteCount(memory.bytes - bodies(of: memory).bytes)
    }

    /// The smallest `--memory` value in whole mebibytes with a pixel share of `bytes`: `297MiB`.
    /// Nil if that overflows.
    package static func text(ofMemoryForPixels bytes: Int) -> String? {
        let share = pixels(of: .mebibytes(1)).bytes
        let mebibytes = bytes / share + (bytes % share == 0 ? 0 : 1)
        return mebibytes <= Int.max >> 20 ? "\(mebibytes)MiB" : nil
    }
}
