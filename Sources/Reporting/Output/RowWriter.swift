package import FileOutput
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
