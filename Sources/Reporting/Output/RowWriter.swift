package import FileOutput
internal import Glibc
package import PrefetchModel

/// Writes tab-separated lines, built as bytes and written to an ``OutputFile`` in large blocks. The
/// output of `list`: a million lines should take a second.
package struct RowWriter: ~Copyable {
    private let file: OutputFile
    private var memory: UnsafeMutableRawBufferPointer
    /// Bytes that are written into the memory.
    private var count = 0
    /// The start of the incomplete line.
    private var lineStart = 0

    private static let capacity = 256 << 10
    private static let hexadecimalDigits = Array("0123456789abcdef".utf8)

    package init(_ file: consuming OutputFile) {
        self.file = file
        memory = .allocate(byteCount: RowWriter.capacity, alignment: 1)
    }

    deinit { memory.deallocate() }

    // MARK: Lines

    /// Makes room for a line of at most `most` bytes, including tabs and line end.
    ///
    /// - Precondition: the line before is at its end.
    package mutating func beginLine(most: Int) throws(OutputError) {
        precondition(count == lineStart, "a line without an end")
        guard memory.count - count < most else { return }
        try flush()
        guard memory.count < most else { return }
        memory.deallocate()
        memory = .allocate(byteCount: most, alignment: 1)
    }

    package mutating func endLine() {
        append(UInt8(ascii: "\n"))
        lineStart = count
    }

    /// Removes and returns the line's cells, instead of ending the line.
    package mutating func takeCells() -> [String] {
        let line = UnsafeRawBufferPointer(rebasing: memory[lineStart..<count])
        count = lineStart
        return line.split(separator: UInt8(ascii: "\t"), omittingEmptySubsequences: false).map {
            String(decoding: $0, as: UTF8.self)
        }
    }

    /// Writes all complete lines.
    package mutating func flush() throws(OutputError) {
        precondition(count == lineStart, "a line without an end")
        guard count > 0 else { return }
        // Emptied even on failure: some bytes may have been written.
        defer { (count, lineStart) = (0, 0) }
        try file.write(UnsafeRawBufferPointer(rebasing: memory[..<count]))
    }

    // MARK: Cells

    /// Begins the next cell of a line.
    package mutating func separate() { append(UInt8(ascii: "\t")) }

    package mutating func append(_ byte: UInt8) {
        memory[count] = byte
        count += 1
    }

    package mutating func append(_ bytes: UnsafeRawBufferPointer) {
        guard let source = bytes.baseAddress else { return }
        precondition(bytes.count <= memory.count - count, "a line is longer than announced")
        guard let target = memory.baseAddress else { return }
        memcpy(target + count, source, bytes.count)
        count += bytes.count
    }

    package mutating func append(_ text: String) {
        var text = text
        text.withUTF8 { append(UnsafeRawBufferPointer($0)) }
    }

    /// Appends a decimal number, 0 or more.
    package mutating func append(_ number: Int) {
        var digits = 1
        var rest = number
        while rest > 9 {
            rest /= 10
            digits += 1
        }
        rest = number
        for index in stride(from: count + digits - 1, through: count, by: -1) {
            memory[index] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10)
            rest /= 10
        }
        count += digits
    }

    /// Appends the text of ``Timestamp/description``.
    package mutating func append(_ time: Timestamp) {
        let range = count..<(count + Timestamp.textCount)
        time.writeText(to: UnsafeMutableRawBufferPointer(rebasing: memory[range]))
        count = range.upperBound
    }

    /// Appends the path of a content file, as in ``StoredImage/relativePath``.
    package mutating func append(pathOf digest: UnsafeRawBufferPointer, format: ImageFormat) {
        append("content/")
        append(hexadecimal: UnsafeRawBufferPointer(rebasing: digest.prefix(1)))
        append(UInt8(ascii: "/"))
        append(hexadecimal: digest)
        append(UInt8(ascii: "."))
        append(format.fileExtension)
    }

    private mutating func append(hexadecimal bytes: UnsafeRawBufferPointer) {
        RowWriter.hexadecimalDigits.withUnsafeBufferPointer { digits in
            for byte in bytes {
                memory[count] = digits[Int(byte >> 4)]
                memory[count + 1] = digits[Int(byte & 15)]
                count += 2
            }
        }
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
