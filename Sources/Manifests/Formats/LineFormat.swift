/// A format of lists: turns the lines of a source into entries.
///
/// Not thread-safe.
protocol LineFormat: AnyObject {
    /// Whether a line longer than ``ManifestOptions/maximumLineBytes`` arrives in several pieces.
    /// Otherwise only its beginning arrives, as a long line.
    var takesPieces: Bool { get }

    /// Whether a byte order mark is the format's own matter, and UTF-16 is allowed.
    var readsByteOrderMark: Bool { get }

    /// Takes the next line, or the next piece of one.
    ///
    /// - Throws: ``ManifestError`` if the rest of the source can't be read, ``URLParsingError`` if
    ///   libcurl can't be loaded. The entries appended before stay valid.
    func take(_ line: ListLine, to entries: EntryAppender) throws

    /// Takes the end of the source.
    ///
    /// - Throws: ``ManifestError`` if the source ends too early.
    func finish(_ entries: EntryAppender) throws
}

extension LineFormat {
    var takesPieces: Bool { false }
    var readsByteOrderMark: Bool { false }
    func finish(_: EntryAppender) throws {}
}

/// A line, or a piece of one.
struct ListLine {
    /// 1 for the first line of the source.
    let number: Int
    /// The bytes, with the line feed if the line has one. Valid during the call.
    let bytes: UnsafeBufferPointer<UInt8>
    /// Whether the line is longer than the limit, and `bytes` are its beginning, or a piece of it.
    let isLong: Bool

    /// The bytes without line feed and carriage returns: text that was converted twice has two.
    var text: UnsafeBufferPointer<UInt8> {
        guard !isLong, bytes.last == 0x0A || bytes.last == 0x0D else { return bytes }
        var rest = bytes[...]
        if rest.last == 0x0A { rest.removeLast() }
        while rest.last == 0x0D { rest.removeLast() }
        return UnsafeBufferPointer(rebasing: rest)
    }
}
