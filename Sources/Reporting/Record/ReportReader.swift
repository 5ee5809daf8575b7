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
            guard let type = values.first, names.member(of: type, at: 0) == .type else {
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
        for (position, value) in values.enumerated() {
            switch names.member(of: value, at: position) {
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
        for (position, value) in values.enumerated() {
            switch names.member(of: value, at: position) {
            case .manifest: result.manifest = value.string ?? ""
            case .line: result.line = value.integer ?? 0
            case .url: result.url = value.string ?? ""
            case .key: result.key = value.string ?? ""
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
            case .sha256: image.digest = value.string.flatMap { ContentDigest(hexadecimal: $0) }
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
    case type, manifest, line, url, key, outcome, reason, message, attempts, format, decoded
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

/// Recognises members by comparing them with the last line's: most lines have the same names in
/// the same order.
private struct MemberNames {
    private var known: [(name: [UInt8], member: Member)] = []

    /// Lines with other names each must not fill the memory.
    private static let mostNames = 64

    mutating func member(of value: cjson_value, at position: Int) -> Member {
        let name = value.nameBytes
        if position < known.count, known[position].name.isEqual(to: name) {
            return known[position].member
        }
        let text = String(decoding: name, as: UTF8.self)
        let member = Member(rawValue: text) ?? .other
        let entry = (Array(name), member)
        if position < known.count {
            known[position] = entry
        } else if position == known.count, known.count < MemberNames.mostNames {
            known.append(entry)
        }
        return member
    }
}

extension [UInt8] {
    fileprivate func isEqual(to other: UnsafeRawBufferPointer) -> Bool {
        guard count == other.count, let start = other.baseAddress else { return false }
        return withUnsafeBytes { $0.baseAddress.map { memcmp($0, start, count) == 0 } ?? false }
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
