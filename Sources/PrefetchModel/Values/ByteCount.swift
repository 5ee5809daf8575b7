/// A number of bytes, never negative.
package struct ByteCount: Hashable, Comparable, Sendable {
    package let bytes: Int

    package init(_ bytes: Int) {
        precondition(bytes >= 0, "a byte count is not negative")
        self.bytes = bytes
    }

    package static func kibibytes(_ count: Int) -> ByteCount { ByteCount(count << 10) }
    package static func mebibytes(_ count: Int) -> ByteCount { ByteCount(count << 20) }

    package static func < (left: ByteCount, right: ByteCount) -> Bool { left.bytes < right.bytes }
}

extension ByteCount: CustomStringConvertible {
    /// Three significant digits in binary units, `81.2 KiB`; plain bytes below 1 KiB.
    package var description: String {
        guard bytes >= 1024 else { return "\(bytes) B" }
        var value = Double(bytes)
        var unit = "B"
        for next in ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"] where value >= 1023.5 {
            value /= 1024
            unit = next
        }
        let decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0
        let scale = decimals == 2 ? 100 : decimals == 1 ? 10 : 1
        let scaled = Int((value * Double(scale)).rounded())
        guard decimals > 0 else { return "\(scaled) \(unit)" }
        // Trailing zeros are kept, so that columns align.
        let fraction = String(scaled % scale)
        let zeros = String(repeating: "0", count: decimals - fraction.count)
        return "\(scaled / scale).\(zeros)\(fraction) \(unit)"
    }
}
