/// Lines of a report that are no results.
package struct ReportDamage: Sendable {
    /// Damaged lines, and a last one without its end.
    package private(set) var lines = 0
    /// `line 12: invalid JSON at byte 40` of the first one.
    package private(set) var first: String?

    mutating func note(line: Int, _ problem: String) {
        if lines == 0 { first = "line \(line): \(problem)" }
        lines += 1
    }
}
