internal import CJSON
internal import Glibc
import PrefetchModel

/// Reads a report, as ``ReportWriter`` writes it, into a ``RunRecord``.
///
/// Bytes arrive in pieces of any size. Memory is limited by the longest line. Lines that are no
/// results are counted as damage, and reading continues after them.
package final class ReportReader {
    /// Longer lines are damage: columns of a list may be large, but a line is no file.
    private static let longestLine = 64 << 20

    package private(set) var record = RunRecord()
    private let members = JSONMembers()
    private var names = MemberNames()
    /// The beginning of a line whose end has not arrived.
    private var rest: [UInt8] = []
    private var line = 0

    package init() {}

    /// Reads the next bytes.
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
        do throws(JSONProblem) {
            let values = try members.read(text)
            names.read(values)
            guard let type = values.first, names.members[0] == .type else {
                throw JSONProblem(text: "no line of a report")
            }
            switch type.string {
            case "result": try takeResult(values)
            case "summary": record.end(RunRecord.Ending(members.object(text), by: JSONMembers()))
            default: throw JSONProblem(text: "no line of a report")
            }
        } catch {
            record.damage.note(line: line, error.text)
        }
    }

    private func takeResult(_ values: UnsafeBufferPointer<cjson_value>) throws(JSONProblem) {
        var outcome: Outcome?
        for (member, value) in zip(names.members, values) {
            switch member {
            case .outcome: outcome = value.string.flatMap(Outcome.init)
            case .expiresAt: if let time = value.time { record.noteExpiry(time) }
            default: break
            }
        }
        guard let outcome else { throw JSONProblem(text: "a result without an outcome") }
        // Most lines of most reports have none.
        guard RunRecord.hasDetails(outcome) else { return record.count(outcome, reason: nil) }
        record.note(result(outcome, values))
    }

    private func result(
        _ outcome: Outcome, _ values: UnsafeBufferPointer<cjson_value>
    ) -> EntryResult {
        var result = EntryResult(manifest: "", line: 0, url: "", key: "", outcome: outcome)
        var image = ImageMembers()
        for (member, value) in zip(names.members, values) {
            switch member {
            case .manifest: result.manifest = value.string ?? ""
            case .line: result.line = value.integer ?? 0
            case .url: result.url = value.string ?? ""
            case .reason: result.reason = value.string.flatMap(FailureReason.init)
            case .message: result.message = value.string
            case .httpStatus: result.httpStatus = value.integer
            case .attempts: result.attempts = max(0, value.integer ?? 0)
            case .bytesReceived: result.bytesReceived = max(0, value.integer ?? 0)
            case .endedAfter: result.endedAfter = value.duration
            case .transfer: result.stages.transfer = value.duration
            case .thumbHash:
                result.placeholder = value.thumbHash.map { Placeholder(thumbHash: $0, colour: nil) }
            case .replaced: result.replaced = replaced(JSONMember(value))
            case .bytesStored: image.bytes = value.integer
            case .format: image.format = value.string.flatMap(ImageFormat.init)
            case .width: image.width = value.integer ?? 0
            case .height: image.height = value.integer ?? 0
            case .sha256: image.digest = ContentDigest(lowercaseHexadecimal: value.bytes)
            case .decoded: image.isDecoded = value.bytes.first != UInt8(ascii: "f")
            case .type, .outcome, .expiresAt, .other: break
            }
        }
        result.stored = image.image
        return result
    }

    private func replaced(_ value: JSONMember) -> ReplacedImage? {
        let members = value.members(by: JSONMembers())
        var image = ImageMembers()
        image.digest = members["sha256"]?.text.flatMap { ContentDigest(hexadecimal: $0) }
        image.format = members["format"]?.text.flatMap(ImageFormat.init)
        image.bytes = members["bytes"]?.integer
        guard let time = members["fetched_at"]?.time, let image = image.image else { return nil }
        return ReplacedImage(
            fetchedAt: time, image: image,
            thumbHash: members["thumbhash"]?.text.flatMap { Placeholder.thumbHash(base64: $0) })
    }

    /// The members that describe the stored image.
    private struct ImageMembers {
        var bytes: Int?
        var format: ImageFormat?
        var width = 0
        var height = 0
        var digest: ContentDigest?
        var isDecoded = true

        var image: StoredImage? {
            guard let bytes, bytes >= 0, let format, let digest else { return nil }
            return StoredImage(
                digest: digest, format: format, isDecoded: isDecoded,
                widthInPixels: max(0, width), heightInPixels: max(0, height),
                size: ByteCount(bytes))
        }
    }
}

/// The members of a result's line that a record needs.
private enum Member: String, CaseIterable {
    case type, manifest, line, url, outcome, reason, message, attempts, format, decoded
    case width, height, sha256, replaced
    case httpStatus = "http_status"
    case bytesReceived = "bytes_received"
    case bytesStored = "bytes_stored"
    case expiresAt = "expires_at"
    case transfer = "transfer_ms"
    case endedAfter = "ended_ms"
    case thumbHash = "thumbhash"
    case other
}

/// The members of a line by position. They are recognised by comparing names with those of earlier
/// lines: a report has a few kinds of lines, with the same names in the same order.
private struct MemberNames {
    private struct Kind {
        /// The names, one after the other.
        var names: [UInt8] = []
        var ends: [Int] = []
        var members: [Member] = []

        init(_ values: UnsafeBufferPointer<cjson_value>) {
            for value in values {
                names += value.nameBytes
                ends.append(names.count)
                let name = String(decoding: value.nameBytes, as: UTF8.self)
                members.append(Member(rawValue: name) ?? .other)
            }
        }

        func isLike(_ values: UnsafeBufferPointer<cjson_value>) -> Bool {
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

    private var kinds: [Kind] = []
    /// The kind of the line read last.
    private var current = 0

    /// Lines with other names each must not fill the memory.
    private static let mostKinds = 16

    /// The members of the line read last.
    var members: [Member] { kinds.isEmpty ? [] : kinds[current].members }

    mutating func read(_ values: UnsafeBufferPointer<cjson_value>) {
        if current < kinds.count, kinds[current].isLike(values) { return }
        if let known = kinds.firstIndex(where: { $0.isLike(values) }) {
            current = known
        } else if kinds.count < MemberNames.mostKinds {
            current = kinds.count
            kinds.append(Kind(values))
        } else {
            current = (current + 1) % kinds.count
            kinds[current] = Kind(values)
        }
    }
}

extension cjson_value {
    fileprivate var thumbHash: [UInt8]? { string.flatMap { Placeholder.thumbHash(base64: $0) } }
}

extension Slice<UnsafeRawBufferPointer> {
    /// The index of the first line feed.
    fileprivate var lineEnd: Int? {
        guard let base = base.baseAddress, !isEmpty,
            let found = memchr(base + startIndex, 0x0A, count)
        else { return nil }
        return UnsafeRawPointer(found) - base
    }
}
