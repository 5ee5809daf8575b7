import ArgumentParser

/// A number of requests in a time: `5/s`, `0.5/s`, `30/m`, `100/h`; a bare number is per second.
struct RateArgument: ExpressibleByArgument, Equatable {
    /// The time between two requests, up to a day.
    let interval: Duration

    private static let units: [Substring: Duration] = [
        "s": .seconds(1), "m": .seconds(60), "h": .seconds(3600),
    ]

    init?(argument: String) {
        let parts = argument.split(separator: "/", omittingEmptySubsequences: false)
        guard let first = parts.first, let count = Double(first), count.isFinite, count > 0,
            let unit = parts.count == 1 ? .seconds(1) : RateArgument.units[parts[1]],
            parts.count <= 2, first.allSatisfy({ $0.isASCII && $0.isNumber || $0 == "." })
        else { return nil }
        interval = unit / count
        guard interval <= .seconds(86_400) else { return nil }
    }
}
