import CacheStorage
import PrefetchModel
import Reporting

extension ReportPage {
    /// Writes the expiries of the next days, in the cache or else in the report's lines.
    func writeExpiry(to html: inout HTMLWriter) {
        guard cache != nil || !record.expiries.isEmpty else { return }
        var forecast = ExpiryForecast(at: now)
        for (day, count) in cache?.expiries ?? record.expiries.map({ ($0.key, $0.value) }) {
            forecast.note(day: day, count: count)
        }
        html.section("Expiry", isHalf: true) { section in
            let soon = forecast.byDay.reduce(0, +)
            let place = cache == nil ? "of this report" : "in the cache"
            let (expired, later) = (forecast.expired, forecast.later)
            var text = "\(groupedCount(soon, "image")) \(place) "
            text += "\(soon == 1 ? "expires" : "expire") in the next \(ExpiryForecast.days) days; "
            text += "\(grouped(expired)) \(expired == 1 ? "has" : "have") expired, and "
            text += "\(grouped(later)) \(later == 1 ? "expires" : "expire") later."
            section.element("p", text)
            guard soon > 0 else { return }
            section.days(
                "Images that expire by day", from: forecast.today, forecast.byDay, .warn,
                most: grouped
            ) { groupedCount($0, "image") }
        }
    }

    func writeGrowth(to html: inout HTMLWriter) {
        guard let cache else { return }
        html.section("Growth of the cache") { section in
            let first = now.day - Int64(ReportPage.growthDays - 1)
            let stored = (first...now.day).map { cache.storedByDay[$0, default: 0] }
            let total = stored.reduce(0, +)
            section.element(
                "p",
                "The cache holds \(groupedCount(cache.images, "image")) in "
                    + "\(sizeText(cache.contentBytes)). Runs stored \(sizeText(total)) in the last "
                    + "\(ReportPage.growthDays) days.")
            guard total > 0 else { return }
            section.days(
                "Bytes stored by day", from: first, stored, .info, most: sizeText, text: sizeText)
        }
    }
}

extension HTMLWriter {
    fileprivate mutating func days(
        _ subject: String, from first: Int64, _ values: [Int], _ fill: Chart.Fill,
        most: (Int) -> String, text: (Int) -> String
    ) {
        let columns = values.enumerated().map { offset, value in
            Chart.Column(
                parts: [.init(value, fill)],
                title: "\(dayText(first + Int64(offset))): \(text(value))")
        }
        let titles = columns.filter { $0.total > 0 }.map(\.title).joined(separator: "; ")
        Chart.columns(columns, kind: "days", alternative: "\(subject): \(titles)", to: &self)
        axis(
            dayText(first), "at most \(most(values.max() ?? 0)) a day",
            dayText(first + Int64(values.count - 1)))
    }
}

/// The images that expire in the next 30 days.
struct ExpiryForecast {
    static let days = 30

    let today: Int64
    /// By day from today; exactly ``days``.
    private(set) var byDay = [Int](repeating: 0, count: ExpiryForecast.days)
    private(set) var expired = 0
    private(set) var later = 0

    init(at now: Timestamp) {
        today = now.day
    }

    mutating func note(day: Int64, count: Int) {
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
