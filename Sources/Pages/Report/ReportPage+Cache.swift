import PrefetchModel
import Reporting

extension ReportPage {
    /// Writes the expiries of the next days, in the cache or else in the report's lines.
    func writeExpiry(to html: inout HTMLWriter) {
        guard cache != nil || !record.expiries.isEmpty else { return }
        let forecast = cache?.expiries ?? reportedExpiries
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

    private var reportedExpiries: ExpiryForecast {
        var forecast = ExpiryForecast(at: now)
        for (day, count) in record.expiries { forecast.note(day: day, count: count) }
        return forecast
    }

    func writeGrowth(to html: inout HTMLWriter) {
        guard let cache else { return }
        html.section("Growth of the cache") { section in
            let first = now.day - Int64(CacheOutlook.days - 1)
            let stored = (first...now.day).map { cache.storedByDay[$0, default: 0] }
            let total = stored.reduce(0, +)
            section.element(
                "p",
                "The cache holds \(groupedCount(cache.images, "image")) in "
                    + "\(sizeText(cache.contentBytes)). Runs stored \(sizeText(total)) in the last "
                    + "\(CacheOutlook.days) days.")
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
