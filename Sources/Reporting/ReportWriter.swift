package import FileOutput
package import PrefetchModel

/// Writes the report of a run: JSON Lines, UTF-8, with the summary as the last line. Members of the
/// lines are described in docs/report.md, ``EntryResult`` and ``RunSummary``.
package struct ReportWriter: ~Copyable, Sendable {
    private static let bufferBytes = 64 << 10

    private var file: OutputFile
    private var json = JSONObjectWriter()
    /// The first error of writing; after it nothing is written, and each call throws it again.
    private(set) var failure: OutputError?
    var pathPrefix: String { json.pathPrefix }

    /// Creates or empties the file; `-` is standard output. Paths of images are absolute in
    /// `directory`, or relative without it.
    package init(path: String, pathsIn directory: String? = nil) throws(OutputError) {
        self.init(try OutputFile(path: path), pathsIn: directory)
    }

    package init(_ file: consuming OutputFile, pathsIn directory: String? = nil) {
        self.file = file
        json.pathPrefix = directory.map { $0.hasSuffix("/") ? $0 : $0 + "/" } ?? ""
        json.reserveCapacity(ReportWriter.bufferBytes + 4096)
    }

    package var isStandardOutput: Bool { file.isStandardOutput }
    package var name: String { file.name }

    /// Appends a line. The file is written in blocks of 64 KiB, and by ``finish(_:)``.
    package mutating func write(_ result: EntryResult) throws(OutputError) {
        if let failure { throw failure }
        json.append(result)
        json.endLine()
        if json.bytes.count >= ReportWriter.bufferBytes { try flush() }
    }

    /// Appends complete lines of ``WarmLineWriter``, large blocks without copying them.
    package mutating func write(lines: ArraySlice<UInt8>) throws(OutputError) {
        if let failure { throw failure }
        guard lines.count >= ReportWriter.bufferBytes else {
            json.append(lines: lines)
            if json.bytes.count >= ReportWriter.bufferBytes { try flush() }
            return
        }
        try flush()
        do {
            try file.write(lines)
        } catch {
            failure = error
            throw error
        }
    }

    /// Writes the summary as the last line, puts the file on the disk, and closes it.
    package mutating func finish(_ summary: RunSummary) throws(OutputError) {
        if let failure { throw failure }
        json.append(summary)
        json.endLine()
        try flush()
        do {
            try file.synchronize()
            try file.close()
        } catch {
            failure = error
            throw error
        }
    }

    private mutating func flush() throws(OutputError) {
        defer { json.removeAll() }
        do {
            try file.write(json.bytes)
        } catch {
            failure = error
            throw error
        }
    }
}
