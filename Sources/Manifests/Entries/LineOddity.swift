import Glibc
import PrefetchModel

/// A form that lines of other programs' lists have. Some are bad lines; others are valid URLs that
/// servers answer with 404.
enum LineOddity: CaseIterable {
    case quotationMarks, listItem, markup, textBefore, sourceSet, mirrors, table, separatorAtEnd
    case entity, invisibleCharacter

    /// The predicate of `N lines …`, and the remedy.
    var text: (found: String, remedy: String) {
        switch self {
        case .quotationMarks: ("have quotation marks around the URL", "remove them")
        case .listItem: ("begin with a list's mark", "remove the marks in front of the URLs")
        case .markup: ("are Markdown or HTML", "keep only the URLs")
        case .textBefore: ("have text before the URL", "keep only the URLs")
        case .sourceSet:
            ("are entries of a srcset", "keep only the URLs, without sizes like 480w")
        case .mirrors:
            (
                "have several URLs",
                "mirrors of one image are written URL url=URL; other images have lines of their own"
            )
        case .table:
            ("have columns", "--no-header --url-column N reads the URLs of column N, from 1")
        case .separatorAtEnd: ("end with a comma, semicolon or stop", "remove it")
        case .entity:
            ("contain an HTML entity, like &amp;", "replace it: the list is a copy of HTML")
        case .invisibleCharacter:
            ("contain an invisible character, like a no-break space", "remove these characters")
        }
    }

    /// The form of a line without its line end; nil for a usual one.
    init?(_ line: UnsafeBufferPointer<UInt8>) {
        guard let first = line.first, let last = line.last(where: { !$0.isBlank }),
            LineOddity.mayBeOdd(line) || ".)".utf8.contains(last)
        else { return nil }
        let isPlain = line.allSatisfy { $0 < 0x80 }
        if LineOddity.isQuoted(line, first, last) {
            self = .quotationMarks
        } else if !isPlain, LineOddity.hasInvisible(line) {
            self = .invisibleCharacter
        } else if LineOddity.isListItem(line) {
            self = .listItem
        } else if line.contains("](http") || line.contains("=\"http") || first == UInt8(ascii: "<")
        {
            self = .markup
        } else if let kind = LineOddity.followingText(line) {
            self = kind
        } else if LineOddity.isTableRow(line) {
            self = .table
        } else if LineOddity.hasTextBefore(line) {
            self = .textBefore
        } else if LineOddity.endsWithSeparator(line, last) {
            self = .separatorAtEnd
        } else if LineOddity.entities.contains(where: line.contains) {
            self = .entity
        } else {
            return nil
        }
    }

    /// The form of a line of a URL and, behind a space or tab, another URL or a size as in a
    /// `srcset`; nil for another line.
    static func followingText(_ line: UnsafeBufferPointer<UInt8>) -> LineOddity? {
        guard let blank = line.firstIndex(where: \.isBlank) else { return nil }
        let rest = line[blank...].drop(while: \.isBlank)
        guard !line[..<blank].isEmpty, line.starts(with: "http".utf8) || line.first == 0x2F else {
            return nil
        }
        if rest.isAbsoluteURL { return .mirrors }
        let size = rest.prefix { !$0.isBlank && $0 != UInt8(ascii: ",") }
        return size.isDescriptor ? .sourceSet : nil
    }

    /// Whether it has one of the bytes of the forms below; few lines do, and this is ten times as
    /// fast as they are.
    private static func mayBeOdd(_ line: UnsafeBufferPointer<UInt8>) -> Bool {
        line.contains { byte in
            byte < 64 ? signs >> byte & 1 != 0 : byte >= 0x80 || byte == 0x60 || byte == 0x7C
        }
    }

    /// The bits of a tab, a blank and `"&'(,;<`; a grave accent and `|` are above 63.
    private static let signs: UInt64 = "\t \"&'(,;<".utf8.reduce(0) { $0 | 1 << UInt64($1) }

    private static func endsWithSeparator(
        _ line: UnsafeBufferPointer<UInt8>, _ last: UInt8
    ) -> Bool {
        guard ",;.)|".utf8.contains(last), line.starts(with: "http".utf8) else { return false }
        // A path may end with dots.
        let rest = line.prefix { !$0.isBlank }.dropLast()
        return last != UInt8(ascii: ".") || !"/.".utf8.contains(rest.last ?? last)
    }

    private static let marks: Set<Character> = ["\"", "'", "`", "“", "”", "‘", "’", "«", "»", "„"]
    private static let entities: [StaticString] = ["&amp;", "&AMP;", "&#38;", "&#x26;", "&#038;"]
    private static let extensions: [StaticString] = [
        ".jpg", ".jpeg", ".png", ".gif", ".webp", ".avif", ".JPG", ".JPEG", ".PNG",
    ]

    private static func isQuoted(
        _ line: UnsafeBufferPointer<UInt8>, _ first: UInt8, _ last: UInt8
    ) -> Bool {
        if first < 0x80, last < 0x80 {
            return [first, last].contains { marks.contains(Character(Unicode.Scalar($0))) }
        }
        let text = String(decoding: line, as: UTF8.self)
        return [text.first, text.last].contains { $0.map(marks.contains) ?? false }
    }

    private static func hasInvisible(_ line: UnsafeBufferPointer<UInt8>) -> Bool {
        String(decoding: line, as: UTF8.self).unicodeScalars.contains { scalar in
            guard scalar.value >= 0x80 else { return false }
            switch scalar.properties.generalCategory {
            case .spaceSeparator, .format, .lineSeparator, .paragraphSeparator: return true
            default: return false
            }
        }
    }

    /// Whether it begins with `- `, `* `, `• `, `- [x] ` or a number like `1. `, before a URL.
    private static func isListItem(_ line: UnsafeBufferPointer<UInt8>) -> Bool {
        guard let blank = line.firstIndex(where: \.isBlank), blank < 8,
            line[blank...].contains(UInt8(ascii: ":"))
        else { return false }
        let mark = line[..<blank]
        return ["-", "*", "+", "•", "–", "—", "·"].contains { mark.elementsEqual($0.utf8) }
            || mark.last.map { ".):".utf8.contains($0) } ?? false
                && mark.dropLast().allSatisfy { (0x30...0x39).contains($0) }
    }

    /// Whether a URL follows a separator, or text that is no field follows a tab or an image's
    /// extension and a separator.
    private static func isTableRow(_ line: UnsafeBufferPointer<UInt8>) -> Bool {
        let isURLFirst = line.starts(with: "http".utf8)
        let separators: [StaticString] = [
            ",http", "\thttp", ";http", "|http", ",\"http", "\t\"http",
        ]
        if !isURLFirst, separators.contains(where: line.contains) { return true }
        if isURLFirst, hasColumnBehindExtension(line) { return true }
        guard let tab = line.firstIndex(of: 0x09) else { return false }
        let field = line[tab...].drop(while: \.isBlank).prefix { !$0.isBlank }
        return !field.isEmpty && field.first != UInt8(ascii: "#")
            && !field.contains(UInt8(ascii: "="))
    }

    /// Whether the URL itself goes on with a separator behind an image's extension, outside of its
    /// query.
    private static func hasColumnBehindExtension(_ line: UnsafeBufferPointer<UInt8>) -> Bool {
        let path = UnsafeBufferPointer(
            rebasing: line.prefix { !$0.isBlank && $0 != UInt8(ascii: "?") })
        guard let separator = path.lastIndex(where: { ",;|".utf8.contains($0) }),
            separator + 1 < path.count, !path[separator...].contains(UInt8(ascii: "/"))
        else { return false }
        let first = path.firstIndex { ",;|".utf8.contains($0) } ?? separator
        let head = path[..<first]
        return extensions.contains { text in
            let bytes = UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
            return head.suffix(bytes.count).elementsEqual(bytes)
        }
    }

    /// Whether text and a blank, an equals sign or the like precede a URL.
    private static func hasTextBefore(_ line: UnsafeBufferPointer<UInt8>) -> Bool {
        guard !line.starts(with: "http".utf8), line.first != UInt8(ascii: "/") else { return false }
        let starts: [StaticString] = [" http", "=http", "(http", ":http", "[http", "<http"]
        return starts.contains(where: line.contains)
    }
}

extension Slice<UnsafeBufferPointer<UInt8>> {
    /// Whether it is a size in a `srcset`: `300w`, `200h`, `1.5x`
    /// (<https://html.spec.whatwg.org/#srcset-attribute>).
    var isDescriptor: Bool {
        guard let unit = last, "wxh".utf8.contains(unit), first?.isDecimalDigit ?? false else {
            return false
        }
        return dropLast().allSatisfy { $0.isDecimalDigit || $0 == UInt8(ascii: ".") }
    }
}

extension UnsafeBufferPointer<UInt8> {
    fileprivate func contains(_ text: StaticString) -> Bool {
        guard var position = baseAddress else { return false }
        let (length, end) = (text.utf8CodeUnitCount, position + count)
        // Few lines have the first byte.
        while end - position >= length,
            let found = memchr(position, Int32(text.utf8Start[0]), end - position - length + 1)
        {
            if memcmp(found, text.utf8Start, length) == 0 { return true }
            position = UnsafePointer(found.assumingMemoryBound(to: UInt8.self)) + 1
        }
        return false
    }
}

/// Counts the odd lines at the beginning of a list. Its lines usually have one form.
struct OddLines {
    /// The lines that are examined, so a long list takes no longer.
    private static let examinedLines = 1000
    /// Fewer lines of a form are reported one by one, if at all.
    private static let fewestLines = 4

    private var found: [LineOddity: (count: Int, firstLine: Int)] = [:]
    private var isPartial = false

    /// Examines a URL of a format that has cells or elements in place of lines.
    mutating func examine(url: UnsafeBufferPointer<UInt8>, number: Int) {
        guard number <= OddLines.examinedLines else {
            isPartial = true
            return
        }
        guard let oddity = LineOddity(url),
            [.quotationMarks, .markup, .entity, .invisibleCharacter].contains(oddity)
        else { return }
        found[oddity, default: (0, number)].count += 1
    }

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
            // A line with an entity does not fail, so that nothing else tells of a single one.
            let fewest = oddity == .entity ? 1 : OddLines.fewestLines
            guard let (count, line) = found[oddity], count >= fewest else { return nil }
            let lines =
                isPartial
                ? "of the first \(OddLines.examinedLines) lines" : count == 1 ? "line" : "lines"
            let text = oddity.text
            let predicate =
                count == 1 ? text.found.replacing("contain ", with: "contains ") : text.found
            return ("\(count) \(lines) \(predicate), first line \(line)", text.remedy)
        }
    }
}
