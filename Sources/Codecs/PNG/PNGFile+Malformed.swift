internal import PrefetchModel

/// The ancillary chunks, and the palettes that suggest colours, that break the rules of the format
/// (PNG third edition, sections 5.6 and 11.3). Decoders skip them, or fail: they lose no pixel.
extension PNGFile {
    /// Returns the indices of the chunks to leave out of a file that keeps all metadata.
    ///
    /// Chunks of a valid animation and unknown chunks need only a right checksum. Transparency that
    /// is damaged is an error elsewhere.
    var malformedChunks: Set<Int> {
        var rules = PNGChunkRules(self)
        return Set(chunks.indices.filter { rules.rejects(chunks[$0]) })
    }
}

private struct PNGChunkRules {
    private let file: PNGFile
    private let lastData: Int
    private let repeated: Set<UInt32>
    private let hasProfile: Bool
    private var seen: Set<UInt32> = []
    private var palettes: Set<[UInt8]> = []
    private var paletteEntries = 0
    /// The size of the texts unpacked so far.
    private var unpackedBytes = 0

    init(_ file: PNGFile) {
        self.file = file
        let data = file.chunks.filter { $0.type == .IDAT }
        lastData = data.last?.range.lowerBound ?? 0
        repeated = file.repeatedSpaces
        hasProfile = file.profile != nil
    }

    /// Whether a palette is right, or the pixels need it. Chromium shows no picture with one that
    /// suggests too many colours.
    private func isRightPalette(_ count: Int) -> Bool {
        switch file.colorType {
        case 2, 6: (3...768).contains(count) && count % 3 == 0
        case 3: true
        default: false
        }
    }

    /// Whether the next chunk is ancillary, or a palette that suggests colours, and breaks a rule.
    mutating func rejects(_ chunk: PNGFile.Chunk) -> Bool {
        let type = chunk.type
        guard type & 0x2000_0000 != 0 else {
            if type == .PLTE, !seen.contains(.IDAT) {
                guard isRightPalette(chunk.data.count) else { return true }
                paletteEntries = min(chunk.data.count / 3, 256)
            }
            seen.insert(type)
            return false
        }
        if [.acTL, .fcTL, .fdAT].contains(type) { return file.isAnimationInvalid }
        guard type & 0x2000 == 0, file.isIntact(chunk), isInOrder(chunk),
            isFirst(chunk)
        else { return true }
        // The first undamaged EXIF has the orientation, even if the rest is malformed.
        let isRight = hasRightContent(chunk)
        if isRight || type == .eXIf { seen.insert(type) }
        return !isRight
    }

    private static let beforeData: Set<UInt32> = [
        .gAMA, .cHRM, .sRGB, .iCCP, .sBIT, .cICP, .mDCV, .cLLI, .bKGD, .hIST, .tRNS, .pHYs, .sPLT,
        .oFFs, .pCAL, .sCAL, .sTER,
    ]
    private static let beforePalette: Set<UInt32> = [.gAMA, .cHRM, .sRGB, .iCCP, .sBIT]
    private static let behindPalette: Set<UInt32> = [.hIST]

    private func isInOrder(_ chunk: PNGFile.Chunk) -> Bool {
        let type = chunk.type
        if seen.contains(.IDAT) {
            return chunk.range.lowerBound > lastData && !Self.beforeData.contains(type)
        }
        return seen.contains(.PLTE)
            ? !Self.beforePalette.contains(type)
            : !(Self.behindPalette.contains(type) || file.colorType == 3 && type == .bKGD)
    }

    private mutating func isFirst(_ chunk: PNGFile.Chunk) -> Bool {
        guard !repeated.contains(chunk.type) else { return false }
        if chunk.type == .sPLT {
            return palettes.insert(Array(file.data(of: chunk).prefix { $0 != 0 })).inserted
        }
        let isKnown = Self.beforeData.contains(chunk.type) || [.eXIf, .tIME].contains(chunk.type)
        return !isKnown || !seen.contains(chunk.type)
    }

    private mutating func hasRightContent(_ chunk: PNGFile.Chunk) -> Bool {
        let data = file.data(of: chunk)
        switch chunk.type {
        case .tRNS where file.colorType & 4 != 0: return false
        case .tRNS, .cHRM, .sBIT:
            return file.isTaken(chunk, paletteEntries: paletteEntries)
        case .gAMA: return data.count == 4 && data.contains { $0 != 0 }
        case .sRGB: return data.count == 1 && data[0] <= 3 && !hasProfile
        case .iCCP: return hasProfile
        case .cICP: return data.count == 4 && data[2] == 0 && data[3] <= 1
        case .mDCV: return data.count == 24
        case .cLLI: return data.count == 8
        case .bKGD: return isBackground(data)
        case .hIST: return data.count == 2 * paletteEntries
        case .pHYs, .oFFs: return data.count == 9 && data[8] <= 1
        case .sTER: return data.count == 1 && data[0] <= 1
        case .tIME: return isTime(data)
        case .eXIf: return ExifOrientation.isWhole(tiff: data)
        case .sCAL: return data.count >= 4 && (1...2).contains(data[0])
        case .pCAL: return text(data).map { $0.count >= 10 } ?? false
        case .sPLT: return isSuggestedPalette(data)
        case .tEXt: return text(data) != nil
        case .zTXt:
            return text(data).map { $0.first == 0 && unpacked($0.dropFirst()) != nil } ?? false
        case .iTXt: return isInternationalText(data)
        default: return true
        }
    }

    private func isBackground(_ data: UnsafeRawBufferPointer) -> Bool {
        if file.colorType == 3 { return data.count == 1 && Int(data[0]) < paletteEntries }
        guard data.count == (file.colorType & 2 == 0 ? 2 : 6) else { return false }
        return stride(from: 0, to: data.count, by: 2).allSatisfy {
            data.bigEndian16(at: $0) < 1 << file.bitDepth
        }
    }

    private func isTime(_ data: UnsafeRawBufferPointer) -> Bool {
        data.count == 7 && (1...12).contains(data[2]) && (1...31).contains(data[3])
            && data[4] < 24 && data[5] < 60 && data[6] <= 60
    }

    private func isSuggestedPalette(_ data: UnsafeRawBufferPointer) -> Bool {
        guard let rest = text(data), let depth = rest.first else { return false }
        return depth == 8 && (rest.count - 1) % 6 == 0 || depth == 16 && (rest.count - 1) % 10 == 0
    }

    /// The bytes behind a keyword (section 11.3.3.2) and its zero byte; nil without a valid one.
    private func text(_ data: UnsafeRawBufferPointer) -> Slice<UnsafeRawBufferPointer>? {
        guard let zero = data.firstIndex(of: 0), (1...79).contains(zero) else { return nil }
        let keyword = data[..<zero]
        let isPrintable = keyword.allSatisfy { (32...126).contains($0) || $0 >= 161 }
        let space = UInt8(ascii: " ")
        let isSpaced =
            keyword.first == space || keyword.last == space
            || zip(keyword, keyword.dropFirst()).contains { $0 == space && $1 == space }
        return isPrintable && !isSpaced ? data[(zero + 1)...] : nil
    }

    /// Unpacks a text; nil for a damaged one. Texts beyond the limit of all are not unpacked, and
    /// pass as empty.
    private mutating func unpacked(_ stream: Slice<UnsafeRawBufferPointer>) -> [UInt8]? {
        guard unpackedBytes < CodecLimits.maximumMetadataBytes else { return [] }
        let text = PNGFile.unpacked(stream)
        // A bomb costs as much as a text of the largest size.
        unpackedBytes += text?.count ?? CodecLimits.maximumMetadataBytes / 16
        return text
    }

    private mutating func isInternationalText(_ data: UnsafeRawBufferPointer) -> Bool {
        guard let rest = text(data), rest.count >= 2,
            let packing = rest.first, packing <= 1, rest.dropFirst().first == 0
        else { return false }
        let parts = rest.dropFirst(2).split(
            separator: 0, maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3 else { return false }
        guard packing == 1 else { return parts.dropFirst().allSatisfy { isUTF8($0) } }
        return isUTF8(parts[1]) && unpacked(parts[2]).map { isUTF8($0) } ?? false
    }

    private func isUTF8(_ bytes: some Sequence<UInt8>) -> Bool {
        String(validating: Array(bytes), as: UTF8.self) != nil
    }
}

extension UInt32 {
    fileprivate static let pHYs: UInt32 = 0x7048_5973
    fileprivate static let oFFs: UInt32 = 0x6F46_4673
    fileprivate static let sCAL: UInt32 = 0x7343_414C
    fileprivate static let sTER: UInt32 = 0x7354_4552
    fileprivate static let tEXt: UInt32 = 0x7445_5874
    fileprivate static let zTXt: UInt32 = 0x7A54_5874
}
