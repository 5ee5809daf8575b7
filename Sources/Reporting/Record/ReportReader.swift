internal import CJSON
internal import Glibc
import PrefetchModel

/// Reads a report, as ``ReportWriter`` writes it, into a ``RunRecord``.
///
/// Bytes arrive in pieces of any size. Memory is limited by the longest line. Damaged lines are
/// counted, and reading continues after them.
package final class ReportReader {
    /// Longer lines are damage. Columns of a list may be large.
    private static let longestLine = 64 << 20

    package private(set) var record = RunRecord()
    private let parser = JSONParser()
    private var shapes = LineShapes()
    /// The beginning of an incomplete line.
    private var rest: [UInt8] = []
    private var line = 0

    package init() {}

    package func read(_ bytes: UnsafeRawBufferPointer) {
        var bytes = bytes[...]
        while let end = bytes.lineEnd {
            let piece = bytes[..<end]
            bytes = bytes[(end + 1)...]
            guard !rest.isEmpty else {
                take(UnsafeRawBufferPointer(rebasing: piece))
                continue
            }
            append(piece)
            let whole = rest
            rest.removeAll(keepingCapacity: true)
            whole.withUnsafeBytes(take)
        }
        append(bytes)
    }

    /// Ends the reading: a last line without its end was cut off.
    ///
    /// - Returns: The record of the run.
    package func finish() -> RunRecord {
        guard !rest.isEmpty else { return record }
        line += 1
        record.damage.note(line: line, "cut off")
        rest = []
        return record
    }

    private func append(_ bytes: Slice<UnsafeRawBufferPointer>) {
        rest += bytes.prefix(ReportReader.longestLine + 1 - rest.count)
    }

    private func take(_ text: UnsafeRawBufferPointer) {
        line += 1
        guard text.count <= ReportReader.longestLine else {
            return record.damage.note(line: line, "too long")
        }
        do throws(UserError) {
            let values = try parser.parse(text)
            switch values.first?.isNamed("type") == true ? values.first?.string : nil {
            case "result": try takeResult(values)
            case "summary":
                var reader = JSONRecordReader(values: values)
                record.end(reader.read(RunSummary.self))
            default: throw UserError("no line of a report")
            }
        } catch {
            record.damage.note(line: line, error.message)
        }
    }

    private func takeResult(_ values: UnsafeBufferPointer<cjson_value>) throws(UserError) {
        shapes.find(values)
        if let time = shapes.current.expiry.flatMap({ values[$0].time }) { record.noteExpiry(time) }
        guard
            let outcome = shapes.current.outcome.flatMap({ values[$0].string })
                .flatMap(Outcome.init)
        else { throw UserError("a result without an outcome") }
        // Most lines of most reports have none.
        guard RunRecord.hasDetails(outcome) else { return record.count(outcome, reason: nil) }
        var reader = JSONRecordReader(values: values, places: shapes.current.places)
        record.note(reader.read(EntryResult.self).whole)
        shapes.current.places = reader.places
    }
}

/// The positions of members in lines with the same names. A report has a few kinds of lines, so
/// they are found by comparing the names with earlier lines.
private struct LineShapes {
    struct Shape {
        private var names: [UInt8] = []
        private var ends: [Int] = []
        let outcome: Int?
        let expiry: Int?
        var places: [Int] = []

        init(_ values: UnsafeBufferPointer<cjson_value>) {
            for value in values {
                names += value.nameBytes
                ends.append(names.count)
            }
            outcome = values.lastIndex { $0.isNamed("outcome") }
            expiry = values.lastIndex { $0.isNamed("expires_at") }
        }

        func matches(_ values: UnsafeBufferPointer<cjson_value>) -> Bool {
            guard values.count == ends.count else { return false }
            return names.withUnsafeBytes { names in
                var start = 0
                for place in ends.indices {
                    let count = ends[place] - start
                    guard values[place].name_count == count else { return false }
                    if count > 0, let base = names.baseAddress,
                        memcmp(base + start, values[place].name, count) != 0
                    {
                        return false
                    }
                    start = ends[place]
                }
                return true
            }
        }
    }

    private var shapes: [Shape] = []
    private var position = 0

    /// Lines with other names each must not fill the memory.
    private static let mostShapes = 16

    /// The shape of the last line.
    ///
    /// - Precondition: ``find(_:)`` was called.
    var current: Shape {
        get { shapes[position] }
        _modify { yield &shapes[position] }
    }

    mutating func find(_ values: UnsafeBufferPointer<cjson_value>) {
        if position < shapes.count, shapes[position].matches(values) { return }
        if let known = shapes.firstIndex(where: { $0.matches(values) }) {
            position = known
        } else if shapes.count < LineShapes.mostShapes {
            position = shapes.count
            shapes.append(Shape(values))
        } else {
            position = (position + 1) % shapes.count
            shapes[position] = Shape(values)
        }
    }
}

extension Slice<UnsafeRawBufferPointer> {
    fileprivate var lineEnd: Int? {
        guard let base = base.baseAddress, !isEmpty,
            let found = memchr(base + startIndex, 0x0A, count)
        else { return nil }
        return UnsafeRawPointer(found) - base
    }
}
