/// Counts the odd lines at the beginning of a list. Its lines usually have one form.
struct OddLines {
    /// The lines that are examined, so a long list takes no longer.
    private static let examinedLines = 1000
    /// Fewer lines of a form are reported one by one, if at all.
    private static let fewestLines = 4

    private var found: [LineOddity: (count: Int, firstLine: Int)] = [:]
    private var isPartial = false

    mutating func examine(_ line: UnsafeBufferPointer<UInt8>, number: Int) {
        guard number <= OddLines.examinedLines else {
            isPartial = true
            return
        }
        guard let oddity = LineOddity(line) else { return }
        found[oddity, default: (0, number)].count += 1
    }

    /// A line for people about each form of several lines, without the manifest's name.
    var notes: [(text: String, remedy: String)] {
        LineOddity.allCases.compactMap { oddity in
            guard let (count, line) = found[oddity], count >= OddLines.fewestLines else {
                return nil
            }
            let lines = isPartial ? "of the first \(OddLines.examinedLines) lines" : "lines"
            return (
                "\(count) \(lines) \(oddity.text.found), first line \(line)", oddity.text.remedy
            )
        }
    }
}
