package import FileOutput
internal import Glibc
package import PrefetchModel

/// Writes tab-separated lines, built as bytes and written to an ``OutputFile`` in large blocks. The
/// output of `list`: a million lines should take a second.
package struct RowWriter: ~Copyable {
    private let file: OutputFile
    private var capacity = RowWriter.capacity
    private var start = UnsafeMutableRawPointer.allocate(
        byteCount: RowWriter.capacity, alignment: 1)
    private var pen: Pen
    private var lineStart = 0

    private static let capacity = 256 << 10

    package init(_ file: consuming OutputFile) {
        self.file = file
        pen = Pen(position: start)
    }

    deinit { start.deallocate() }

    private var count: Int { pen.position - start }

    // MARK: Lines

    /// Makes room for a line of at most `most` bytes, including tabs and line end.
    ///
    /// - Precondition: the line before is at its end.
    package mutating func beginLine(most: Int) throws(OutputError) {
        precondition(count == lineStart, "a line without an end")
        guard capacity - count < most else { return }
        try flush()
        guard capacity < most else { return }
        start.deallocate()
        start = .allocate(byteCount: most, alignment: 1)
        capacity = most
        pen = Pen(position: start)
    }

    package mutating func endLine() {
        append(UInt8(ascii: "\n"))
        lineStart = count
    }

    /// Removes and returns the line's cells, instead of ending the line.
    package mutating func takeCells() -> [String] {
        let line = UnsafeRawBufferPointer(start: start + lineStart, count: count - lineStart)
        pen.position = start + lineStart
        return line.split(separator: UInt8(ascii: "\t"), omittingEmptySubsequences: false).map {
            String(decoding: $0, as: UTF8.self)
        }
    }

    package mutating func flush() throws(OutputError) {
        precondition(count == lineStart, "a line without an end")
        guard count > 0 else { return }
        // Emptied even on failure: some bytes may have been written.
        defer { (pen.position, lineStart) = (start, 0) }
        try file.write(UnsafeRawBufferPointer(start: start, count: count))
    }

    // MARK: Cells

    package mutating func separate() { append(UInt8(ascii: "\t")) }

    package mutating func append(_ byte: UInt8) { pen.write(byte) }

    package mutating func append(_ bytes: UnsafeRawBufferPointer) {
        precondition(bytes.count <= capacity - count, "a line is longer than announced")
        pen.write(bytes)
    }

    package mutating func append(_ text: String) {
        var text = text
        text.withUTF8 { append(UnsafeRawBufferPointer($0)) }
    }

    /// Appends a decimal number, 0 or more.
    package mutating func append(_ number: Int) { pen.write(number) }

    package mutating func append(_ time: Timestamp) {
        time.writeText(
            to: UnsafeMutableRawBufferPointer(start: pen.position, count: Timestamp.textCount))
        pen.position += Timestamp.textCount
    }

    package mutating func append(pathOf digest: UnsafeRawBufferPointer, format: ImageFormat) {
        append("content/")
        pen.write(pathOf: digest, format)
    }

    /// The longest text of a time, number or path.
    package static let mostFieldBytes = 128
}

/// Whether all bytes are printable ASCII, so that ``printable(_:)`` changes nothing.
package func isPlain(_ text: UnsafeRawBufferPointer) -> Bool {
    // Without branches, so that the compiler vectorises the loop.
    var special: UInt8 = 0
    for byte in text { special |= byte &- 0x20 > 0x7E - 0x20 ? 1 : 0 }
    return special == 0
}

/// Writes into memory that is large enough.
struct Pen {
    var position: UnsafeMutableRawPointer

    private static let hexadecimalDigits: StaticString = "0123456789abcdef"

    mutating func write(_ byte: UInt8) {
        position.storeBytes(of: byte, as: UInt8.self)
        position += 1
    }

    mutating func write(_ bytes: UnsafeRawBufferPointer) {
        guard let start = bytes.baseAddress else { return }
        memcpy(position, start, bytes.count)
        position += bytes.count
    }

    mutating func write(_ bytes: [UInt8]) { bytes.withUnsafeBytes { write($0) } }

    /// The text needs no escapes.
    mutating func write(text: String) {
        // Inlined like the standard library's version; called for each line.
        var text = text
        text.withUTF8 { write(UnsafeRawBufferPointer($0)) }
    }

    /// - Precondition: the number is not negative.
    mutating func write(_ number: Int) {
        var count = 1
        var rest = number
        while rest > 9 {
            rest /= 10
            count += 1
        }
        rest = number
        for offset in stride(from: count - 1, through: 0, by: -1) {
            position.storeBytes(
                of: UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10),
                toByteOffset: offset, as: UInt8.self)
            rest /= 10
        }
        position += count
    }

    /// Two digits a byte, in lower case.
    mutating func writeHexadecimal(_ bytes: UnsafeRawBufferPointer) {
        let digits = Pen.hexadecimalDigits.utf8Start
        for byte in bytes {
            position.storeBytes(of: digits[Int(byte >> 4)], as: UInt8.self)
            position.storeBytes(of: digits[Int(byte & 15)], toByteOffset: 1, as: UInt8.self)
            position += 2
        }
    }

    /// The path of a content file below its folder, as in ``StoredImage/relativePath``.
    mutating func write(pathOf digest: UnsafeRawBufferPointer, _ format: ImageFormat) {
        writeHexadecimal(UnsafeRawBufferPointer(rebasing: digest.prefix(1)))
        write(UInt8(ascii: "/"))
        writeHexadecimal(digest)
        write(UInt8(ascii: "."))
        write(text: format.fileExtension)
    }
}
