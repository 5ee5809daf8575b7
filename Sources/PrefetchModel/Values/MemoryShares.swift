/// How `--memory` is shared: a quarter is for bodies that arrive or wait, the rest for pixels.
///
/// Bodies and pixels have pools of their own: if a decode could take what bodies hold, all workers might wait for memory
/// that only they can free.
package enum MemoryShares {
    package static func bodies(of memory: ByteCount) -> ByteCount { ByteCount(memory.bytes / 4) }

    package static func pixels(of memory: ByteCount) -> ByteCount {
        ByteCount(memory.bytes - bodies(of: memory).bytes)
    }

    /// The least number of whole mebibytes whose share for pixels has so many bytes, as the flag takes it: `297MiB`. Nil
    /// where that is beyond all sizes.
    package static func text(ofMemoryForPixels bytes: Int) -> String? {
        let share = pixels(of: .mebibytes(1)).bytes
        let mebibytes = bytes / share + (bytes % share == 0 ? 0 : 1)
        return mebibytes <= Int.max >> 20 ? "\(mebibytes)MiB" : nil
    }
}
