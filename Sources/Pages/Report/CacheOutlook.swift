package import PrefetchModel

/// The state of the cache for a page: its size, its growth, and future expiries.
package struct CacheOutlook: Sendable {
    package var images: Int
    package var contentBytes: Int
    package var expiries: ExpiryForecast
    /// Bytes that runs have stored by UTC day, as ``Timestamp/day``; the last ``days`` days.
    package var storedByDay: [Int64: Int]

    package static let days = 90

    package init(
        images: Int, contentBytes: Int, expiries: ExpiryForecast, storedByDay: [Int64: Int]
    ) {
        self.images = images
        self.contentBytes = contentBytes
        self.expiries = expiries
        self.storedByDay = storedByDay
    }
}

/// The images that expire in the next 30 days.
package struct ExpiryForecast: Hashable, Sendable {
    package static let days = 30

    package let today: Int64
    /// By day from today; exactly ``days``.
    package private(set) var byDay = [Int](repeating: 0, count: ExpiryForecast.days)
    package private(set) var expired = 0
    package private(set) var later = 0

    package init(at now: Timestamp) {
        today = now.day
    }

    package mutating func note(day: Int64, count: Int) {
        let (offset, overflow) = day.subtractingReportingOverflow(today)
        if overflow || offset >= Int64(ExpiryForecast.days) {
            later += count
        } else if offset < 0 {
            expired += count
        } else {
            byDay[Int(offset)] += count
        }
    }
}
