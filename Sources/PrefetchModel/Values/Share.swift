/// A part of a whole, more than none of it and at most all of it: `5%`, `12.5%`.
package struct Share: Hashable, Sendable, CustomStringConvertible {
    private static let wholeMillionths: Int64 = 1_000_000

    /// Up to 1,000,000.
    package let millionths: Int64

    /// Clamps the number of millionths to 0 ... 1,000,000.
    package init(millionths: Int64) {
        self.millionths = min(max(0, millionths), Share.wholeMillionths)
    }

    /// Reads a percentage above 0 and up to 100; nil for any other text. Rounds to millionths, and
    /// to at least one.
    package init?(percentage text: String) {
        guard text.hasSuffix("%"), let percent = Double(text.dropLast()), percent > 0,
            percent <= 100
        else { return nil }
        millionths = max(1, Int64((percent * 10_000).rounded()))
    }

    package static let whole = Share(millionths: wholeMillionths)

    package var fraction: Double { Double(millionths) / Double(Share.wholeMillionths) }

    /// A percentage with up to four decimals.
    package var description: String {
        guard millionths % 10_000 != 0 else { return "\(millionths / 10_000)%" }
        var decimals = String(millionths % 10_000 + 10_000).dropFirst()
        while decimals.last == "0" { decimals.removeLast() }
        return "\(millionths / 10_000).\(decimals)%"
    }
}
