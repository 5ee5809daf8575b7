package import FileOutput

/// Buffered lines to an ``OutputFile``: the output of `list`, `stats` and `get`, as text or as
/// JSON Lines.
package struct LineWriter: ~Copyable, Sendable {
    private var file: OutputFile
    private var buffer: [UInt8] = []

    package init(_ file: consuming OutputFile) {
        self.file = file
    }

    package mutating func write(_ object: JSONObject) throws(OutputError) {
        buffer += object.bytes
        try endLine()
    }

    /// Writes a line as it is, with a line end added; see ``printable(_:)``.
    package mutating func write(line: String) throws(OutputError) {
        buffer += line.utf8
        try endLine()
    }

    package mutating func finish() throws(OutputError) {
        try flush()
        try file.close()
    }

    private mutating func endLine() throws(OutputError) {
        buffer.append(UInt8(ascii: "\n"))
        if buffer.count >= 64 << 10 { try flush() }
    }

    /// Writes the buffered lines, for a reader that waits for them.
    package mutating func flush() throws(OutputError) {
        guard !buffer.isEmpty else { return }
        // Emptied even on failure: some bytes may have been written.
        defer { buffer.removeAll(keepingCapacity: true) }
        try file.write(buffer)
    }
}
