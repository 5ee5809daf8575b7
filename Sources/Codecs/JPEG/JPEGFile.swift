internal import Glibc
internal import PrefetchModel

/// The marker segments of a JPEG file (ITU-T T.81, annex B), found without decoding.
struct JPEGFile {
    let source: UnsafeRawBufferPointer
    struct Segment {
        let marker: UInt8
        /// The whole segment, from its 0xFF to its last byte.
        let range: Range<Int>
        /// The bytes after the length.
        var payload: Range<Int> { min(range.lowerBound + 4, range.upperBound)..<range.upperBound }
        /// APP0…APP15 and comments.
        var isMetadata: Bool { (0xE0...0xEF).contains(marker) || marker == 0xFE }
    }

    struct FrameHeader {
        let marker: UInt8
        let width: Int
        let height: Int
        /// Horizontal and vertical sampling factors of each component.
        let sampling: [(horizontal: Int, vertical: Int)]
        /// The components' identifiers, in the same order.
        let components: [UInt8]
        var isProgressive: Bool { marker == 0xC2 || marker == 0xCA }
    }

    /// In file order, up to and including the first scan's header.
    private(set) var segments: [Segment] = []
    private(set) var frame: FrameHeader?
    private(set) var orientation = ExifOrientation.upright
    /// The EXIF segment with ``orientation``.
    private var exifSegment: Segment?

    /// Reads up to the first scan.
    ///
    /// - Throws: `unsupported` for coding processes that libjpeg cannot decode, `corrupt` without a
    ///   frame.
    init(headerOf source: UnsafeRawBufferPointer) throws(CodecError) {
        self.source = source
        try read()
    }

    /// Returns the offset of the next marker's 0xFF, at or after `offset`; nil without one.
    func nextMarker(from offset: Int) -> Int? {
        guard var pointer = source.baseAddress.map({ $0 + offset }) else { return nil }
        let end = source.baseAddress.map { $0 + source.count - 1 } ?? pointer
        while pointer < end, let found = memchr(pointer, 0xFF, end - pointer) {
            let position = UnsafeRawPointer(found)
            let next = position.load(fromByteOffset: 1, as: UInt8.self)
            if next != 0 && next != 0xFF { return source.baseAddress.map { position - $0 } }
            pointer = position + 1
        }
        return nil
    }

    /// Returns the segment of a marker; nil if the file ends before it does.
    func segment(at start: Int) -> Segment? {
        guard source.count - start >= 4 else { return nil }
        // A length below 2 counts as 2, as in libjpeg.
        let length = max(source.bigEndian16(at: start + 2), 2)
        guard length <= source.count - start - 2 else { return nil }
        return Segment(marker: source[start + 1], range: start..<start + 2 + length)
    }

    private mutating func read() throws(CodecError) {
        var offset = 2
        while let start = nextMarker(from: offset) {
            switch source[start + 1] {
            case 0x01, 0xD0...0xD8:
                offset = start + 2
                continue
            case 0xD9:
                throw .broken("the file ends without an image")
            default: break
            }
            guard let segment = segment(at: start) else { break }
            guard segments.count < CodecLimits.maximumPieces else {
                throw .limitExceeded("more than \(CodecLimits.maximumPieces) marker segments")
            }
            segments.append(segment)
            offset = segment.range.upperBound
            if segment.marker == 0xDA {
                guard frame != nil else { throw .broken("a scan before its frame") }
                return
            }
            try note(segment)
        }
        throw .cutHeader
    }

    private mutating func note(_ segment: Segment) throws(CodecError) {
        switch segment.marker {
        case 0xF7: throw .unsupported("a JPEG-LS")
        case 0xC0...0xC3, 0xC5...0xC7, 0xC9...0xCB, 0xCD...0xCF:
            guard frame == nil else { throw .broken("two frames") }
            frame = try frame(of: segment)
        case 0xE1 where isExif(segment) && orientation == ExifOrientation.upright:
            let tiff = segment.payload.dropFirst(6)
            orientation = ExifOrientation.value(inTIFF: .init(rebasing: source[tiff]))
            if exifSegment == nil || orientation != ExifOrientation.upright {
                exifSegment = segment
            }
        default: break
        }
    }

    func isExif(_ segment: Segment) -> Bool {
        segment.marker == 0xE1 && segment.payload.count >= 6
            && source.holds("Exif\0", at: segment.payload.lowerBound)
    }

    private func frame(of segment: Segment) throws(CodecError) -> FrameHeader {
        // The decoder supports baseline, extended and progressive, with Huffman or arithmetic
        // coding, but not lossless and hierarchical.
        switch segment.marker {
        case 0xC0, 0xC1, 0xC2, 0xC9, 0xCA: break
        case 0xC3, 0xCB: throw .unsupported("a lossless JPEG")
        default: throw .unsupported("a hierarchical JPEG")
        }
        let payload = UnsafeRawBufferPointer(rebasing: source[segment.payload])
        guard payload.count >= 6, payload.count == 6 + 3 * Int(payload[5]) else {
            throw .broken("bad frame header")
        }
        guard payload[0] == 8 else { throw .unsupported("a JPEG of \(payload[0]) bits a sample") }
        let height = payload.bigEndian16(at: 1)
        let width = payload.bigEndian16(at: 3)
        guard width > 0, payload[5] > 0 else { throw .broken("an image without pixels") }
        // T.81, B.2.5: a segment DNL behind the first scan has the number of lines.
        guard height > 0 else {
            throw .unsupported("a JPEG with its height behind the first scan (DNL)")
        }
        var sampling: [(horizontal: Int, vertical: Int)] = []
        for component in 0..<Int(payload[5]) {
            let factors = Int(payload[7 + 3 * component])
            sampling.append((factors >> 4, factors & 15))
        }
        guard
            sampling.allSatisfy({ (1...4).contains($0.horizontal) && (1...4).contains($0.vertical) }
            )
        else { throw .broken("bad sampling factors") }
        return FrameHeader(
            marker: segment.marker, width: width, height: height, sampling: sampling,
            components: sampling.indices.map { payload[6 + 3 * $0] })
    }

    func imageHeader() throws(CodecError) -> ImageHeader {
        guard let frame else { throw .broken("no frame") }
        let widest = frame.sampling.map(\.horizontal).max() ?? 1
        let tallest = frame.sampling.map(\.vertical).max() ?? 1
        let columns = (frame.width + 8 * widest - 1) / (8 * widest)
        let rows = (frame.height + 8 * tallest - 1) / (8 * tallest)
        var blocks = 0
        for factors in frame.sampling {
            blocks += columns * rows * factors.horizontal * factors.vertical
        }
        return ImageHeader(
            format: .jpeg, widthInPixels: frame.width, heightInPixels: frame.height,
            bitDepth: 8,
            isProgressiveOrInterlaced: frame.isProgressive
                || hasSeveralScans(of: frame),
            orientation: orientation, channels: frame.sampling.count,
            memory: DecoderMemory(coefficientBytes: blocks * 64 * 2), sourceBytes: source.count)
    }

    /// Whether the first scan lacks components, so all coefficients are kept until the last scan.
    private func hasSeveralScans(of frame: FrameHeader) -> Bool {
        guard let scan = segments.last, scan.marker == 0xDA, !scan.payload.isEmpty else {
            return false
        }
        return Int(source[scan.payload.lowerBound]) < frame.sampling.count
    }
}

// MARK: - Metadata

extension JPEGFile {
    static func segment(_ marker: UInt8, _ payload: some Collection<UInt8>) -> [UInt8] {
        let length = payload.count + 2
        return [0xFF, marker, UInt8(length >> 8), UInt8(length & 0xFF)] + payload
    }

    static func orientationSegment(_ orientation: Int) -> [UInt8] {
        segment(0xE1, Array("Exif\0\0".utf8) + ExifOrientation.minimalTIFF(orientation))
    }

    /// Returns APP2 segments with the profile (ICC.1:2022, annex B.4).
    static func profileSegments(_ profile: [UInt8]) -> [UInt8] {
        let most = 65519
        let count = (profile.count + most - 1) / most
        guard count <= 255 else { return [] }
        return (0..<count).flatMap { index in
            let part = profile[index * most..<min(profile.count, (index + 1) * most)]
            return segment(
                0xE2, Array("ICC_PROFILE\0".utf8) + [UInt8(index + 1), UInt8(count)] + part)
        }
    }

    private func isProfilePart(_ segment: Segment) -> Bool {
        segment.marker == 0xE2 && segment.payload.count >= 14
            && source.holds("ICC_PROFILE\0", at: segment.payload.lowerBound)
    }

    /// The profile assembled from its parts; nil unless each part exists exactly once.
    var profile: [UInt8]? {
        let parts = segments.filter { isProfilePart($0) }
        var byNumber: [Int: Segment] = [:]
        var total = 0
        for part in parts {
            let number = Int(source[part.payload.lowerBound + 12])
            guard Int(source[part.payload.lowerBound + 13]) == parts.count,
                (1...parts.count).contains(number),
                byNumber.updateValue(part, forKey: number) == nil
            else { return nil }
            total += part.payload.count - 14
        }
        guard !parts.isEmpty, total <= CodecLimits.maximumMetadataBytes else { return nil }
        var profile: [UInt8] = []
        profile.reserveCapacity(total)
        for number in 1...parts.count {
            guard let part = byNumber[number] else { return nil }
            profile += source[part.payload.dropFirst(14)]
        }
        return ICCProfile.isWhole(profile) ? profile : nil
    }

    /// The TIFF structure of the file's EXIF.
    var exif: [UInt8]? { exifSegment.map { Array(source[$0.payload.dropFirst(6)]) } }

    /// All metadata for new data of the same picture, as segments.
    func metadata(without malformed: [Segment]) -> [UInt8] {
        var result: [UInt8] = []
        let omitted = Set(malformed.map(\.range.lowerBound))
        func append(_ segment: Segment) {
            guard segment.isMetadata, !isManifest(segment) else { return }
            if omitted.contains(segment.range.lowerBound) {
                result += orientationPart(of: segment)
            } else {
                result += JPEGFile.segment(segment.marker, source[segment.payload])
            }
        }
        for segment in segments { append(segment) }
        forEachLaterSegment(append)
        return result
    }

    func whole(without malformed: [Segment]) -> [ImagePiece] {
        Array(source: 0..<source.count, without: malformed.map(\.range)) {
            orientationPart(of: malformed[$0])
        }
    }

    /// The part of a malformed EXIF segment that is of use, as a segment.
    private func orientationPart(of segment: Segment) -> [UInt8] {
        orientation != ExifOrientation.upright && segment.range == exifSegment?.range
            ? JPEGFile.orientationSegment(orientation) : []
    }

    /// The metadata segments that break their formats, in order: EXIF without a whole directory,
    /// parts of no whole ICC profile, a short JFIF or Adobe segment, and a length below 2.
    var malformedSegments: [Segment] {
        let hasProfile = profile != nil
        func isMalformed(_ segment: Segment, isLater: Bool) -> Bool {
            let payload = UnsafeRawBufferPointer(rebasing: source[segment.payload])
            guard segment.isMetadata else { return false }
            guard segment.range.count >= 4,
                source.bigEndian16(at: segment.range.lowerBound + 2) >= 2
            else { return true }
            return switch segment.marker {
            case 0xE0: payload.holds("JFIF\0", at: 0) && payload.count < 14
            case 0xE1:
                payload.holds("Exif\0", at: 0)
                    && !(payload.count > 6
                        && ExifOrientation.isWhole(tiff: .init(rebasing: payload[6...])))
            case 0xE2: payload.holds("ICC_PROFILE\0", at: 0) && (isLater || !hasProfile)
            case 0xEE: payload.holds("Adobe", at: 0) && payload.count < 12
            default: false
            }
        }
        var result = segments.filter { isMalformed($0, isLater: false) }
        forEachLaterSegment { segment in
            if isMalformed(segment, isLater: true) { result.append(segment) }
        }
        return result
    }

    static func name(_ segment: Segment) -> String {
        segment.marker == 0xFE ? "COM" : "APP\(segment.marker & 0x0F)"
    }

    /// Returns the file's own bytes up to `end` without metadata.
    ///
    /// Removes APP1…APP15 and comments, except Adobe's colour transform (APP14), the orientation
    /// and, with `keepsProfile`, the ICC profile. Removes a thumbnail in the JFIF segment. `end` is
    /// the offset after the end-of-image marker, where the decoder found it.
    func stripped(end: Int, keepsProfile: Bool) -> [ImagePiece] {
        var pieces: [ImagePiece] = []
        pieces.append(source: 0..<2)
        var needsOrientation = orientation != ExifOrientation.upright
        for segment in segments {
            append(
                segment, keepsProfile: keepsProfile, needsOrientation: &needsOrientation,
                to: &pieces)
        }
        // The rest is scan data, with tables and further scan headers in between.
        var offset = segments.last?.range.upperBound ?? 2
        forEachLaterSegment(end: end) { segment in
            guard segment.isMetadata else { return }
            pieces.append(source: offset..<segment.range.lowerBound)
            offset = segment.range.upperBound
        }
        if offset < end { pieces.append(source: offset..<end) }
        return pieces
    }

    /// Calls `body` for each segment between the first scan's header and the end of the image, at
    /// `end` at the latest.
    ///
    /// - Returns: The offset behind the marker of that end; nil without one.
    @discardableResult
    func forEachLaterSegment(end: Int? = nil, _ body: (Segment) -> Void) -> Int? {
        let end = end ?? source.count
        var offset = segments.last?.range.upperBound ?? 2
        while let start = nextMarker(from: offset), start < end {
            let marker = source[start + 1]
            switch marker {
            case 0xD9: return start + 2
            case 0x01, 0xD0...0xD8: offset = start + 2
            default:
                guard end - start >= 4 else { return nil }
                offset = min(start + 2 + max(source.bigEndian16(at: start + 2), 2), end)
                body(Segment(marker: marker, range: start..<offset))
            }
        }
        return nil
    }

    private func append(
        _ segment: Segment, keepsProfile: Bool, needsOrientation: inout Bool,
        to pieces: inout [ImagePiece]
    ) {
        let payload = segment.payload
        switch segment.marker {
        case 0xE0:
            guard payload.count >= 14, source.holds("JFIF\0", at: payload.lowerBound) else {
                return
            }
            if payload.count == 14 {
                pieces.append(source: segment.range)
            } else {
                let fixed = source[payload.prefix(12)] + [0, 0]
                pieces.append(.made(JPEGFile.segment(0xE0, fixed)))
            }
        case 0xE1:
            guard needsOrientation, isExif(segment) else { return }
            let minimal = JPEGFile.orientationSegment(orientation)
            if source[segment.range].elementsEqual(minimal) {
                pieces.append(source: segment.range)
            } else {
                pieces.append(.made(minimal))
            }
            needsOrientation = false
        case 0xE2:
            if keepsProfile, isProfilePart(segment) {
                pieces.append(source: segment.range)
            }
        case 0xEE:
            if source.holds("Adobe", at: payload.lowerBound), payload.count >= 12 {
                pieces.append(source: segment.range)
            }
        case 0xE3...0xEF, 0xFE:
            return
        default:
            pieces.append(source: segment.range)
        }
    }
}
