import PrefetchModel

/// Lines of a list, counted.
package struct CountedLines: Sendable {
    package private(set) var count = 0
    package private(set) var first = 0
    private var last = 0

    /// Counts a line once; later lines have larger numbers.
    mutating func note(_ line: Int) {
        guard line != last else { return }
        if count == 0 { first = line }
        count += 1
        last = line
    }
}

/// The parts of a list that are not taken as they are, each told once, at the end of the list.
struct ListNotes {
    var oddLines = OddLines()
    /// Rows without a picture.
    var skipped = CountedLines()
    /// Rows of several URLs that are mirrors of one image.
    var mirrors = CountedLines()
    /// Rows with a column that is left out, and the first such column.
    private var longRows = CountedLines()
    private var longColumn = ""
    /// Lines of JSON with text that has no place in UTF-8.
    var replacedText = CountedLines()

    mutating func note(leftOut column: String, line: Int) {
        if longRows.count == 0 { longColumn = column }
        longRows.note(line)
    }

    /// A line for people about each, without the manifest's name, and its remedy.
    var texts: [(text: String, remedy: String)] {
        var texts = oddLines.notes
        if mirrors.count > 0 {
            let lines = counted(mirrors.count, "array")
            texts.append(
                (
                    "\(lines) of several URLs taken as mirrors of one image, "
                        + "first line \(mirrors.first)",
                    "--each makes each URL an entry"
                ))
        }
        if longRows.count > 0 {
            let rows = longRows.count == 1 ? "1 row has" : "\(longRows.count) rows have"
            texts.append(
                (
                    "\(rows) more than \(ByteCount(ForeignColumns.maximumBytes)) of columns; "
                        + "the report lacks '\(LineExcerpt.text(of: longColumn))', "
                        + "first line \(longRows.first)",
                    "the pictures are not affected; leave long columns out of the list"
                ))
        }
        if replacedText.count > 0 {
            let lines = counted(replacedText.count, "line")
            texts.append(
                (
                    "half a character (a lone surrogate) in \(lines) became U+FFFD, "
                        + "first line \(replacedText.first)",
                    "cut texts between characters, not within a surrogate pair"
                ))
        }
        return texts
    }
}
