import PrefetchModel
import Reporting

extension ReportPage {
    /// Writes the expiries of the next days: those of the cache, else those of the report's lines.
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
            let columns = forecast.byDay.enumerated().map { offset, count in
                let day = dayText(forecast.today + Int64(offset))
                return Chart.Column(
                    parts: [.init(count, .warn)], title: "\(day): \(groupedCount(count, "image"))")
            }
            Chart.columns(
                columns, kind: "days",
                alternative: "Images that expire by day: "
                    + columns.filter { $0.total > 0 }.map(\.title).joined(separator: "; "),
                to: &section)
            section.element("div", [.cssClass("axis")]) { axis in
                axis.element("span", dayText(forecast.today))
                axis.element("span", "at most \(grouped(forecast.byDay.max() ?? 0)) a day")
                axis.element("span", dayText(forecast.today + Int64(ExpiryForecast.days - 1)))
            }
        }
    }

    private var reportedExpiries: ExpiryForecast {
        var forecast = ExpiryForecast(at: now)
        for (day, count) in record.expiries { forecast.note(day: day, count: count) }
        return forecast
    }

    /// Writes the size of the cache and the bytes that runs have stored.
    func writeGrowth(to html: inout HTMLWriter) {
        guard let cache else { return }
        html.section("Growth of the cache") { section in
            let days = (0..<Int64(CacheOutlook.days)).reversed().map { now.day - $0 }
            let total = days.reduce(0) { $0 + cache.storedByDay[$1, default: 0] }
            section.element(
                "p",
                "The cache holds \(groupedCount(cache.images, "image")) in "
                    + "\(sizeText(cache.contentBytes)). Runs stored \(sizeText(total)) in the last "
                    + "\(CacheOutlook.days) days.")
            guard total > 0 else { return }
            let columns = days.map { day in
                let bytes = cache.storedByDay[day, default: 0]
                return Chart.Column(
                    parts: [.init(bytes, .info)], title: "\(dayText(day)): \(sizeText(bytes))")
            }
            Chart.columns(
                columns, kind: "days",
                alternative: "Bytes stored by day: "
                    + columns.filter { $0.total > 0 }.map(\.title).joined(separator: "; "),
                to: &section)
            let most = days.map { cache.storedByDay[$0, default: 0] }.max() ?? 0
            section.element("div", [.cssClass("axis")]) { axis in
                axis.element("span", dayText(now.day - Int64(CacheOutlook.days - 1)))
                axis.element("span", "at most \(sizeText(most)) a day")
                axis.element("span", dayText(now.day))
            }
        }
    }
}
