import CZlib
import Foundation

@testable import Manifests
@testable import PrefetchModel

/// An entry as tests compare it.
struct ReadEntry: Equatable, CustomStringConvertible {
    var line: Int
    var url: String
    var key: String
    var priority: Int
    var problem: String?
    var extras: EntryExtras?

    init(
        _ line: Int, _ url: String, key: String? = nil, priority: Int = 0, problem: String? = nil,
        extras: EntryExtras? = nil
    ) {
        self.line = line
        self.url = url
        self.key = key ?? url
        self.priority = priority
        self.problem = problem
        self.extras = extras
    }

    init(_ record: EntryBatch.Record, of batch: EntryBatch) {
        line = record.line
        url = String(decoding: batch.text[record.url], as: UTF8.self)
        key = String(decoding: batch.text[record.key], as: UTF8.self)
        priority = Int(record.priority.value)
        problem = record.problem < 0 ? nil : batch.problems[record.problem].failure.message
        extras = record.extras < 0 ? nil : batch.extras[record.extras]
    }

    var description: String {
        "\(line): \(url) [\(key)] \(priority) \(problem ?? "") \(extras.map { "\($0)" } ?? "")"
    }
}

extension ReadEntry {
    /// The columns as text; nil without any.
    var columns: String? { extras?.columns.map { String(decoding: $0, as: UTF8.self) } }
}

extension TemporaryFolder {
    /// Reads a list from memory, in a format.
    func read(
        _ text: some Sequence<UInt8>, _ format: ManifestFormat,
        columns: ColumnRules = ColumnRules(),
        readsPages: Bool = false, maximumLineBytes: Int = 64 << 10, readBytes: Int = 128 << 10
    ) throws -> (entries: [ReadEntry], error: ManifestError?) {
        let reader = try ManifestReader(
            path: file("list", text),
            options: ManifestOptions(
                format: format, columns: columns, readsPages: readsPages, keepsColumns: true,
                maximumLineBytes: maximumLineBytes, readBytes: readBytes))
        return reader.readAll()
    }
}

extension ManifestOptions {
    init(
        format: ManifestFormat = .auto, baseURL: String? = nil,
        columns: ColumnRules = ColumnRules(), readsPages: Bool = false, keepsColumns: Bool = false,
        variants: VariantSet? = nil, maximumLineBytes: Int = 64 << 10,
        maximumBatchEntries: Int = 4096, maximumBatchBytes: Int = 1 << 20,
        readBytes: Int = 128 << 10
    ) {
        self.init()
        self.format = format
        self.baseURL = baseURL
        self.columns = columns
        self.readsPages = readsPages
        self.keepsColumns = keepsColumns
        self.variants = variants
        self.maximumLineBytes = maximumLineBytes
        self.maximumBatchEntries = maximumBatchEntries
        self.maximumBatchBytes = maximumBatchBytes
        self.readBytes = readBytes
    }
}

extension EntryBatch {
    var entries: [ReadEntry] { records.map { ReadEntry($0, of: self) } }
}

extension EntryExtras {
    /// Extras with the attributes in the order given.
    init(_ timeToLive: Duration?, _ attributes: KeyValuePairs<String, String> = [:]) throws {
        self.init(
            timeToLive: timeToLive,
            attributes: try attributes.map {
                try EntryAttribute(name: $0.key, value: Array($0.value.utf8))
            })
    }
}

extension ManifestReader {
    /// All entries, and the error that ended the reading.
    func readAll() -> (entries: [ReadEntry], error: ManifestError?) {
        var entries: [ReadEntry] = []
        do throws(ManifestError) {
            while let batch = try nextBatch() { entries += batch.entries }
            return (entries, nil)
        } catch {
            return (entries, error)
        }
    }
}

/// A temporary folder for one test, removed with this value.
final class TemporaryFolder {
    let url: URL

    init() throws {
        url = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    deinit {
        try? FileManager.default.removeItem(at: url)
    }

    func file(_ name: String, _ bytes: some Sequence<UInt8>) throws -> String {
        let file = url.appending(path: name)
        try Data(bytes).write(to: file)
        return file.path
    }
}

/// A pipe that closes its ends with this value, unless they were closed before.
///
/// `@unchecked Sendable` since one thread alone writes and closes the writing end, and the other
/// uses nothing but the descriptor of the reading end, which does not change.
final class Pipe: @unchecked Sendable {
    let reading: Int32
    private var writing: Int32

    init() {
        var ends: [Int32] = [0, 0]
        precondition(pipe(&ends) == 0)
        (reading, writing) = (ends[0], ends[1])
    }

    deinit {
        close(reading)
        closeWriting()
    }

    func write(_ bytes: [UInt8]) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(writing, $0.baseAddress, $0.count) }
            precondition(count > 0)
            rest = rest.dropFirst(count)
        }
    }

    func write(_ text: String) { write(Array(text.utf8)) }

    func closeWriting() {
        if writing >= 0 { close(writing) }
        writing = -1
    }
}

/// One gzip member.
func gzipped(_ bytes: [UInt8]) -> [UInt8] {
    var stream = z_stream()
    var input = bytes
    var output = [UInt8](repeating: 0, count: bytes.count + bytes.count / 1000 + 256)
    let status = input.withUnsafeMutableBufferPointer { input in
        output.withUnsafeMutableBufferPointer { output in
            withUnsafeMutablePointer(to: &stream) { stream in
                precondition(
                    deflateInit2_(
                        stream, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY, ZLIB_VERSION,
                        Int32(MemoryLayout<z_stream>.size)) == Z_OK)
                stream.pointee.next_in = input.baseAddress
                stream.pointee.avail_in = UInt32(input.count)
                stream.pointee.next_out = output.baseAddress
                stream.pointee.avail_out = UInt32(output.count)
                let status = deflate(stream, Z_FINISH)
                return (status, Int(stream.pointee.total_out), deflateEnd(stream))
            }
        }
    }
    precondition(status.0 == Z_STREAM_END)
    return Array(output[..<status.1])
}
