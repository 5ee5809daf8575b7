extension Int {
    /// The largest number that all readers of JSON agree on (RFC 8259 §6). A report may claim
    /// more, and a thousand of these have a sum.
    static let largestReported = 1 << 53

    /// Adds a number of a report, and stays at ``largestReported``; negative ones count as 0.
    mutating func addReported(_ number: Int) {
        self = Swift.min(
            self + Swift.max(0, Swift.min(number, .largestReported)), .largestReported)
    }
}
