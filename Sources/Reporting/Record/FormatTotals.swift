package import PrefetchModel

/// Downloaded images by stored format.
package struct FormatTotals: Sendable {
    package struct Totals: Hashable, Sendable {
        package fileprivate(set) var images = 0
        package fileprivate(set) var received = 0
        package fileprivate(set) var stored = 0
    }

    private var totals: [ImageFormat: Totals] = [:]

    /// The formats with most received bytes first.
    package var rows: [(format: ImageFormat, totals: Totals)] {
        totals.map { ($0.key, $0.value) }.sorted {
            ($1.totals.received, $0.format.rawValue) < ($0.totals.received, $1.format.rawValue)
        }
    }

    mutating func note(_ image: StoredImage, received: Int) {
        totals[image.format, default: Totals()].images += 1
        totals[image.format, default: Totals()].received.addReported(received)
        totals[image.format, default: Totals()].stored.addReported(image.size.bytes)
    }
}
