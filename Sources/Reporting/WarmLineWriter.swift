internal import Glibc
internal import PrefetchModel

/// Writes the lines of warm entries, byte for byte like ``ReportWriter``.
///
/// These lines differ in eleven values, and in seven more per variant if there are several; a
/// remaining orientation follows the height. The
/// ordinary writer makes a template once per batch; it is copied with each entry's values inserted.
/// A member with the same value in all lines needs no code here. With the ordinary writer in its
/// place a report of 500,000 fresh entries takes 1.8 times as long (2.0 times the processor time).
struct WarmLineWriter: WarmLineWriting {
    let pathPrefix: String

    func lines(
        of entries: [WarmEntry], variants: VariantSet, in batch: EntryBatch
    ) -> WarmLines {
        guard !entries.isEmpty else {
            return WarmLines(bytes: [], ends: [Int](repeating: 0, count: batch.records.count))
        }
        let form = LineForm(
            manifest: batch.manifest, variants: variants, pathPrefix: pathPrefix)
        var ends: [Int] = []
        ends.reserveCapacity(batch.records.count)
        let bytes = batch.text.withUnsafeBytes { text in
            let texts = entries.map { EntryTexts(batch.records[$0.number], of: batch, text) }
            let most = texts.reduce(0) {
                $0 + $1.url.count + $1.key.count + $1.columns.count + form.mostOtherBytes
            }
            return [UInt8](unsafeUninitializedCapacity: most) { buffer, count in
                guard let start = UnsafeMutableRawPointer(buffer.baseAddress) else { return }
                var pen = Pen(position: start)
                var time = TimeText()
                for (entry, texts) in zip(entries, texts) {
                    while ends.count < entry.number { ends.append(pen.position - start) }
                    time.show(entry.expiresAt)
                    form.write(
                        entry, texts, time, line: batch.records[entry.number].line, with: &pen)
                    ends.append(pen.position - start)
                }
                count = pen.position - start
            }
        }
        while ends.count < batch.records.count { ends.append(bytes.count) }
        return WarmLines(bytes: bytes, ends: ends)
    }
}

/// The text of an expiry time, cached since many images expire together.
private struct TimeText {
    private var time = Timestamp(milliseconds: 0)
    private(set) var bytes = TimeText.null

    private static let null = Array("null".utf8)

    mutating func show(_ time: Timestamp) {
        guard time != self.time else { return }
        self.time = time
        bytes = time.milliseconds == 0 ? TimeText.null : Array("\"\(time)\"".utf8)
    }
}

/// The URL and key of an entry, as in the report.
private struct EntryTexts {
    enum LineText {
        /// Part of the batch's text, written unchanged.
        case plain(UnsafeRawBufferPointer)
        /// Redacted and escaped, with quotation marks.
        case quoted([UInt8])

        var count: Int {
            switch self {
            case .plain(let bytes): bytes.count + 2
            case .quoted(let bytes): bytes.count
            }
        }
    }

    let url: LineText
    let key: LineText
    /// The last member, with its comma; empty without one.
    let columns: [UInt8]

    private static let columnsLabel = Array(",\"columns\":".utf8)

    init(_ record: EntryBatch.Record, of batch: EntryBatch, _ text: UnsafeRawBufferPointer) {
        columns = batch.extras(of: record)?.columns.map { EntryTexts.columnsLabel + $0 } ?? []
        url = LineText(UnsafeRawBufferPointer(rebasing: text[record.url]))
        key =
            record.key == record.url
            ? url : LineText(UnsafeRawBufferPointer(rebasing: text[record.key]))
    }
}

extension EntryTexts.LineText {
    init(_ bytes: UnsafeRawBufferPointer) {
        guard !EntryTexts.LineText.isPlain(bytes) else {
            self = .plain(bytes)
            return
        }
        let url = RedactedURL(String(decoding: bytes, as: UTF8.self))
        var quoted: [UInt8] = []
        quoted.append(jsonString: url.description)
        self = .quoted(quoted)
    }

    /// Whether neither ``RedactedURL`` nor JSON changes any byte.
    private static func isPlain(_ bytes: UnsafeRawBufferPointer) -> Bool {
        // Without branches, so that the compiler vectorises the loop.
        var special: UInt8 = 0
        for byte in bytes {
            special |= byte &- 0x21 > 0x7E - 0x21 ? 1 : 0
            special |= byte == UInt8(ascii: "\"") ? 1 : 0
            special |= byte == UInt8(ascii: "\\") ? 1 : 0
            // Signs of secrets: user information, query parameters.
            special |= byte == UInt8(ascii: "@") ? 1 : 0
            special |= byte == UInt8(ascii: "=") ? 1 : 0
        }
        return special == 0
    }
}

/// The template of a warm entry's line, and the positions of values that differ between entries.
private struct LineForm {
    private enum WarmMember: String, CaseIterable {
        case line, url, key
        case storedBytes = "bytes_stored"
        case format, decoded, width, height, sha256, path
        case expiresAt = "expires_at"

        /// The members of a variant's object; `bytes` is its name for `bytes_stored`.
        static let ofVariants: [(name: String, member: WarmMember)] = [
            (format.rawValue, format), (decoded.rawValue, decoded), (width.rawValue, width),
            (height.rawValue, height),
            ("bytes", storedBytes), (sha256.rawValue, sha256), (path.rawValue, path),
        ]
    }

    private struct Value {
        let range: Range<Int>
        let member: WarmMember
        /// The position of the variant; nil for the line's own member.
        var variant: Int?
    }

    private let bytes: [UInt8]
    /// In the order of the line.
    private let values: [Value]
    /// The start of every path, with the quotation mark, up to the two-digit folder.
    private let pathStart: [UInt8]

    private static let null = Array("null".utf8)
    /// `}` and the line feed.
    private static let lineEndBytes = 2
    private static let orientationLabel = Array(",\"orientation\":".utf8)
    /// The most bytes by which a value exceeds the template's: numbers have up to 19 digits.
    private static let mostValueBytes = 20 + orientationLabel.count + 1

    var mostOtherBytes: Int { bytes.count + values.count * LineForm.mostValueBytes }

    init(manifest: String, variants: VariantSet, pathPrefix: String) {
        let image = StoredImage(
            digest: .zero, format: .jpeg, widthInPixels: 1, heightInPixels: 1, size: ByteCount(1))
        var result = EntryResult(
            manifest: manifest, line: 1, url: "u", key: "k", outcome: .fresh)
        result.stored = image
        result.expiresAt = Timestamp(seconds: 1)
        if variants.count > 1 {
            result.variants = variants.map {
                VariantResult($0, outcome: .fresh, stored: image)
            }
        }
        var json = JSONObjectWriter()
        json.pathPrefix = pathPrefix
        json.append(result)
        json.endLine()
        let line = json.bytes
        bytes = line
        var values = WarmMember.allCases.map {
            Value(range: LineForm.value(of: $0.rawValue, in: line), member: $0)
        }.sorted { $0.range.lowerBound < $1.range.lowerBound }
        for variant in result.variants.indices {
            for (name, member) in WarmMember.ofVariants {
                let start = values.last?.range.upperBound ?? 0
                values.append(
                    Value(
                        range: LineForm.value(of: name, in: line, from: start), member: member,
                        variant: variant))
            }
        }
        self.values = values
        let path = line[LineForm.value(of: WarmMember.path.rawValue, in: line)]
        // Two digits and `/`, the digest, `.jpg` and a quotation mark.
        pathStart = Array(path.dropLast(3 + 2 * ContentDigest.byteCount + 5))
    }

    /// The range of the value of the first member with that name, quotation marks included.
    ///
    /// A comma before a quotation mark is never part of a string, since quotation marks in strings
    /// are escaped.
    private static func value(of name: String, in line: [UInt8], from first: Int = 0) -> Range<Int>
    {
        let label = Array(",\"\(name)\":".utf8)
        let found = line.indices[first...].first { index in
            line[index] == label[0] && line[index...].starts(with: label)
        }
        guard let found else { preconditionFailure("a line has all members") }
        let start = found + label.count
        var end = start
        if line[start] == UInt8(ascii: "\"") {
            repeat { end += line[end] == UInt8(ascii: "\\") ? 2 : 1 } while line[end] != line[start]
            end += 1
        } else {
            while line[end] != UInt8(ascii: ","), line[end] != UInt8(ascii: "}") { end += 1 }
        }
        return start..<end
    }

    func write(
        _ entry: WarmEntry, _ texts: EntryTexts, _ time: TimeText, line: Int, with pen: inout Pen
    ) {
        bytes.withUnsafeBytes { bytes in
            var start = 0
            for value in values {
                pen.write(UnsafeRawBufferPointer(rebasing: bytes[start..<value.range.lowerBound]))
                switch value.member {
                case .line: pen.write(line)
                case .url: pen.write(texts.url)
                case .key: pen.write(texts.key)
                case .expiresAt: pen.write(time.bytes)
                default:
                    if let image = entry.image(ofVariant: value.variant) {
                        write(value.member, of: image, with: &pen)
                    } else {
                        pen.write(LineForm.null)
                    }
                }
                start = value.range.upperBound
            }
            let end = bytes.count - LineForm.lineEndBytes
            pen.write(UnsafeRawBufferPointer(rebasing: bytes[start..<end]))
            pen.write(texts.columns)
            pen.write(UnsafeRawBufferPointer(rebasing: bytes[end...]))
        }
    }

    private func write(_ number: Int?, with pen: inout Pen) {
        if let number { pen.write(number) } else { pen.write(LineForm.null) }
    }

    private func write(_ member: WarmMember, of image: StoredImage, with pen: inout Pen) {
        switch member {
        case .storedBytes: pen.write(image.size.bytes)
        case .width: write(image.knownWidth, with: &pen)
        case .height:
            write(image.knownHeight, with: &pen)
            if let orientation = image.remainingOrientation {
                pen.write(LineForm.orientationLabel)
                pen.write(orientation)
            }
        case .decoded: pen.write(text: image.isDecoded ? "true" : "false")
        case .format:
            pen.write(UInt8(ascii: "\""))
            pen.write(text: image.format.rawValue)
            pen.write(UInt8(ascii: "\""))
        case .sha256:
            pen.write(UInt8(ascii: "\""))
            image.digest.withBytes { pen.writeHexadecimal($0) }
            pen.write(UInt8(ascii: "\""))
        case .path:
            pen.write(pathStart)
            image.digest.withBytes { pen.write(pathOf: $0, image.format) }
            pen.write(UInt8(ascii: "\""))
        case .line, .url, .key, .expiresAt: preconditionFailure("no value of an image")
        }
    }
}

extension WarmEntry {
    /// The image of a variant; the line's own image without a position.
    fileprivate func image(ofVariant position: Int?) -> StoredImage? {
        guard let position else { return image }
        return variantImages[variantImages.startIndex + position]
    }
}

extension Pen {
    fileprivate mutating func write(_ text: EntryTexts.LineText) {
        switch text {
        case .plain(let bytes):
            write(UInt8(ascii: "\""))
            write(bytes)
            write(UInt8(ascii: "\""))
        case .quoted(let bytes):
            write(bytes)
        }
    }
}
