import PrefetchModel

extension Timestamp {
    /// As an IMF-fixdate; the name of the day is arbitrary.
    var httpDate: String {
        let months = [
            "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
        ]
        let parts = description.split { "-T:Z".contains($0) }
        let month = months[(Int(parts[1]) ?? 1) - 1]
        return "Sun, \(parts[2]) \(month) \(parts[0]) \(parts[3]):\(parts[4]):\(parts[5]) GMT"
    }
}

/// The fields of lines such as `Name: value`.
func fields(_ lines: [String]) -> [HeaderField] {
    lines.map { line in
        let name = line.prefix { $0 != ":" }
        let value = line.dropFirst(name.count + 1).drop { $0 == " " }
        return HeaderField(name: String(name), value: String(value))
    }
}
