internal import CDeflate
internal import CPNG
internal import PrefetchModel

/// The chunks to keep, and the colours that they declare.
extension PNGFile {
    /// Chunks before the image data that `safe` keeps because they change how pixels look, with
    /// their lengths: coding-independent code points, mastering display and light levels, for high
    /// dynamic range.
    ///
    /// `safe` also keeps gamma, chromaticities, sRGB, significant bits, palette, transparency, ICC
    /// profile and orientation. It drops text, time, physical size, suggested palettes, background
    /// and all other chunks.
    private static let sized: [UInt32: Int] = [.cICP: 4, .mDCV: 24, .cLLI: 8]

    static func chunk(_ type: UInt32, _ data: [UInt8]) -> [UInt8] {
        let body = type.bigEndianBytes + data
        return UInt32(data.count).bigEndianBytes + body
            + cpng_crc(body, body.count).bigEndianBytes
    }

    /// Whether the chunk's CRC is correct.
    func isIntact(_ chunk: Chunk) -> Bool {
        let body = UnsafeRawBufferPointer(
            rebasing: source[chunk.range.lowerBound + 4..<chunk.range.upperBound - 4])
        return Int(cpng_crc(body.baseAddress?.assumingMemoryBound(to: UInt8.self), body.count))
            == source.bigEndian32(at: chunk.range.upperBound - 4)
    }

    /// Looks for damaged chunks that the decoder skips although pixels are lost: transparency and
    /// animation.
    func checkIgnoredDamage() throws(CodecError) {
        let isTransparencyDamaged = leadingChunks.contains {
            $0.type == .tRNS && !isIntact($0)
        }
        if let type = isTransparencyDamaged ? UInt32.tRNS : damagedAnimationChunk {
            throw .broken("\(PNGFile.name(type)): CRC error")
        }
    }

    static func name(_ type: UInt32) -> String {
        String(decoding: type.bigEndianBytes, as: UTF8.self)
    }

    /// Chunks other than header, image data and end.
    struct Metadata {
        /// Chunks before the image data, including the palette.
        var leading: [ImagePiece] = []
        /// Chunks after the image data.
        var trailing: [ImagePiece] = []
        /// The indices of malformed chunks, if all other ones are kept.
        var malformed: Set<Int> = []
    }

    /// Returns the chunks to keep, including animation chunks before the image data.
    ///
    /// `hasTransparency` says whether the decoder uses tRNS. With `isUpright`, the orientation is
    /// already applied and is not kept.
    ///
    /// An sRGB profile is dropped, together with the gamma and chromaticities that it overrides
    /// (PNG third edition, section 4.3). Pixels without any of them are sRGB.
    func metadata(
        hasTransparency: Bool, stripping: Recipe.Stripping, isUpright: Bool
    ) -> Metadata {
        if stripping == .none { return wholeMetadata }
        let profile = stripping == .safe ? profile : nil
        let isSRGB = profile.map(ICCProfile.isSRGB) ?? false
        var pieces: [ImagePiece] = []
        var seen: Set<UInt32> = []
        var needsOrientation = orientation != ExifOrientation.upright && !isUpright
        var paletteEntries = 0
        let spaces = repeatedSpaces
        for chunk in leadingChunks.dropFirst() {
            guard isTaken(chunk, paletteEntries: paletteEntries), isIntact(chunk),
                seen.insert(chunk.type).inserted, !spaces.contains(chunk.type)
            else { continue }
            if chunk.type == .PLTE { paletteEntries = chunk.data.count / 3 }
            if chunk.type == .eXIf {
                guard needsOrientation else { continue }
                pieces.append(orientationPiece(chunk))
                needsOrientation = false
                continue
            }
            let isKept =
                switch chunk.type {
                case .PLTE: colorType == 3
                case .tRNS: hasTransparency
                case .acTL, .fcTL: animation != nil
                case _ where stripping == .all: false
                case .iCCP: profile != nil && !isSRGB
                case .gAMA where isSRGB, .cHRM where isSRGB: false
                case .gAMA: PNGFile.isUsable(gamma: scaledValues(chunk.data)[0])
                case .cHRM: PNGFile.primaries(scaledValues(chunk.data)) != nil
                case .sRGB, .sBIT: true
                default: PNGFile.sized[chunk.type] == chunk.data.count
                }
            if isKept { pieces.append(piece(of: chunk)) }
        }
        if needsOrientation {
            pieces.append(.made(PNGFile.chunk(.eXIf, ExifOrientation.minimalTIFF(orientation))))
        }
        return Metadata(leading: pieces.joined)
    }

    /// If gAMA or cHRM is repeated, the values decide which one libpng uses, so none is kept.
    var repeatedSpaces: Set<UInt32> {
        let spaces = leadingChunks.map(\.type).filter { $0 == .gAMA || $0 == .cHRM }
        return Set(spaces.filter { type in spaces.count { $0 == type } > 1 })
    }

    /// Whether the decoder accepts the chunk, judged by its length, values and position after a
    /// palette of this many entries. Otherwise it skips the chunk and accepts a later one of the
    /// same type.
    func isTaken(_ chunk: Chunk, paletteEntries: Int) -> Bool {
        let length = chunk.data.count
        switch chunk.type {
        case .tRNS:
            // A longer one is cut, see ``shortTransparency``.
            return colorType == 3
                ? length > 0 && paletteEntries > 0
                : length == [2, 0, 6, 0, 0, 0, 0][colorType]
        // These must precede the palette (PNG section 5.6).
        case .gAMA: return length == 4 && paletteEntries == 0
        case .cHRM: return length == 32 && paletteEntries == 0
        case .sRGB:
            return length == 1 && paletteEntries == 0 && source[chunk.data.lowerBound] <= 3
        case .sBIT:
            let depth = UInt8(colorType == 3 ? 8 : bitDepth)
            return length == [1, 0, 3, 3, 2, 0, 4][colorType] && paletteEntries == 0
                && source[chunk.data].allSatisfy { (1...depth).contains($0) }
        default: return true
        }
    }

    /// Returns all well-formed ancillary chunks that are known, or safe to copy into a file with
    /// other image data (section 5.4). Each stays before or after the image data.
    private var wholeMetadata: Metadata {
        var metadata = Metadata(malformed: malformedChunks)
        var hasSeenData = false
        for index in orderedIndices.dropFirst() {
            let chunk = chunks[index]
            if chunk.type == .IDAT {
                hasSeenData = true
                continue
            }
            let isSafeToCopy = chunk.type & 0x20 != 0
            guard chunk.type == .PLTE || chunk.type & 0x2000_0000 != 0,
                isSafeToCopy || PNGFile.independent.contains(chunk.type),
                isIntact(chunk), let piece = piece(of: index, without: metadata.malformed)
            else { continue }
            if hasSeenData {
                metadata.trailing.append(piece)
            } else {
                metadata.leading.append(piece)
            }
        }
        metadata.leading = metadata.leading.joined
        metadata.trailing = metadata.trailing.joined
        return metadata
    }

    /// The indices of all chunks, with transparency behind a palette that suggests colours (section
    /// 5.6). Readers with libpng 1.6.39 lose it before one.
    private var orderedIndices: [Int] {
        var order = Array(chunks.indices)
        let leading = leadingChunks
        guard colorType == 2, let palette = leading.lastIndex(where: { $0.type == .PLTE }),
            let transparency = leading.firstIndex(where: { $0.type == .tRNS }),
            transparency < palette
        else { return order }
        order.insert(order.remove(at: transparency), at: palette)
        return order
    }

    /// The first transparency behind a palette with fewer entries, and the chunk for these. libpng
    /// loses the longer one.
    private var shortTransparency: (start: Int, chunk: [UInt8])? {
        let leading = leadingChunks
        guard colorType == 3, let place = leading.firstIndex(where: { $0.type == .PLTE }),
            let chunk = leading[place...].first(where: { $0.type == .tRNS && !$0.data.isEmpty })
        else { return nil }
        let entries = min(leading[place].data.count / 3, 1 << bitDepth)
        guard chunk.data.count > entries, isIntact(chunk) else { return nil }
        let kept = Array(source[chunk.data].prefix(entries))
        return (chunk.range.lowerBound, PNGFile.chunk(.tRNS, kept))
    }

    private func piece(of chunk: Chunk) -> ImagePiece {
        guard chunk.type == .tRNS, let short = shortTransparency,
            short.start == chunk.range.lowerBound
        else { return .source(chunk.range) }
        return .made(short.chunk)
    }

    /// A chunk of a file with all metadata; nil for a malformed one. Of a malformed EXIF the
    /// orientation stays.
    private func piece(of index: Int, without malformed: Set<Int>) -> ImagePiece? {
        let chunk = chunks[index]
        guard malformed.contains(index) else { return piece(of: chunk) }
        let isTurned = orientation != ExifOrientation.upright
        return isTurned && chunk.range == exifChunk?.range ? orientationPiece(chunk) : nil
    }

    /// Chunks that are not marked as safe to copy, but remain correct for the same pixels.
    private static let independent: Set<UInt32> = [
        .PLTE, .tRNS, .gAMA, .cHRM, .sRGB, .iCCP, .sBIT, .cICP, .mDCV, .cLLI, .bKGD, .hIST, .tIME,
        .pCAL,
    ]

    private func orientationPiece(_ chunk: Chunk) -> ImagePiece {
        let minimal = PNGFile.chunk(.eXIf, ExifOrientation.minimalTIFF(orientation))
        return source[chunk.range].elementsEqual(minimal) ? .source(chunk.range) : .made(minimal)
    }

    /// Returns the file's own header, image data, frames and end, with this metadata. Returns the
    /// whole source if nothing is stripped.
    func stripped(_ metadata: Metadata, stripping: Recipe.Stripping) -> [ImagePiece] {
        // Also of a file without it, or with a damaged one.
        let end = chunks.last.flatMap { $0.type == .IEND ? $0.range : nil }
        let goodEnd = hasDamagedEnd ? nil : end
        let endPiece = goodEnd.map { ImagePiece.source($0) } ?? .made(PNGFile.chunk(.IEND, []))
        if stripping == .none, !isWithoutAnimation {
            let indices = orderedIndices
            let isOrdered = indices == Array(chunks.indices)
            if metadata.malformed.isEmpty, isOrdered, goodEnd != nil, shortTransparency == nil {
                return [.source(0..<source.count)]
            }
            let kept = indices.filter { chunks[$0].type != .IEND }.compactMap {
                piece(of: $0, without: metadata.malformed)
            }
            let rest = end.map { [ImagePiece.source($0.upperBound..<source.count)] } ?? []
            return ([.source(0..<8)] + kept + [endPiece] + rest).joined
        }
        var pieces = [.source(0..<33)] + metadata.leading
        for chunk in chunks.drop(while: { $0.type != .IDAT }) {
            let isKept =
                switch chunk.type {
                case .IDAT: true
                case .fcTL, .fdAT: animation != nil
                default: false
                }
            if isKept { pieces.append(.source(chunk.range)) }
        }
        if isWithoutAnimation { pieces += metadata.trailing }
        return (pieces + [endPiece]).joined
    }

    /// The TIFF structure of the file's EXIF.
    var exif: [UInt8]? { exifChunk.map { Array(source[$0.data]) } }

    /// The keyword of XMP, and the empty fields behind it: not packed, no language, no translation.
    private static let startOfXMP = Array("XML:com.adobe.xmp\0\0\0\0\0".utf8)

    /// The XMP of the first undamaged text of that name.
    var xmp: [UInt8]? {
        let name = PNGFile.startOfXMP.prefix { $0 != 0 } + [0]
        let text = chunks.lazy.filter { $0.type == .iTXt }
            .first { source[$0.data].starts(with: name) && isIntact($0) }
        guard let fields = text.map({ source[$0.data].dropFirst(name.count) }),
            let isPacked = fields.first, fields.count >= 2
        else { return nil }
        // The language and the translated keyword end with a zero each.
        let parts = fields.dropFirst(2).split(
            separator: 0, maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3 else { return nil }
        return isPacked == 0 ? Array(parts[2]) : PNGFile.unpacked(parts[2])
    }

    static func chunks(of metadata: CarriedMetadata) -> [UInt8] {
        (metadata[.exif].map { chunk(.eXIf, $0) } ?? [])
            + (metadata[.xmp].map { chunk(.iTXt, startOfXMP + $0) } ?? [])
    }

    /// The colours of the first valid of cICP, iCCP, sRGB, and gAMA with cHRM (PNG third edition,
    /// section 4.3).
    var colours: SourceColours {
        var spaces: [UInt32: Range<Int>] = [:]
        var repeated: Set<UInt32> = []
        var paletteEntries = 0
        for chunk in leadingChunks {
            if chunk.type == .PLTE { paletteEntries = chunk.data.count / 3 }
            guard [.cICP, .sRGB, .gAMA, .cHRM, .cLLI, .mDCV].contains(chunk.type),
                isTaken(chunk, paletteEntries: paletteEntries), isIntact(chunk)
            else { continue }
            if spaces.updateValue(chunk.data, forKey: chunk.type) != nil {
                repeated.insert(chunk.type)
            }
        }
        if let points = spaces[.cICP].map({ Array(source[$0]) }), PNGFile.areSpecified(points) {
            guard points[3] == 1 else {
                return .unconvertible(
                    "a PNG of narrow range (cICP), which is kept by same and original only")
            }
            return SourceColours(
                primaries: Int(points[0]), transfer: Int(points[1]),
                peak: peak(in: spaces), ofA: "a PNG")
        }
        if let profile { return SourceColours(profile) }
        if spaces[.sRGB] != nil { return .sRGB(profile: nil) }
        // Repeated ones contradict each other, so `same` keeps none of them either.
        func values(_ type: UInt32) -> [Double]? {
            repeated.contains(type) ? nil : spaces[type].map(scaledValues)
        }
        return PNGFile.colours(gamma: values(.gAMA)?[0], chromaticities: values(.cHRM))
    }

    /// Whether code points say something, as RGB: neither primaries nor transfer are unspecified
    /// (ITU-T H.273, value 2). Browsers ignore others.
    private static func areSpecified(_ points: [UInt8]) -> Bool {
        points.count == 4 && points[0] != 2 && points[1] != 2 && points[2] == 0
    }

    /// The brightest light in cd/m²: that of the content, or else of the screen that it was made on
    /// (sections 11.3.2.7 and 11.3.2.8).
    private func peak(in chunks: [UInt32: Range<Int>]) -> Double {
        for (type, offset) in [(UInt32.cLLI, 0), (.mDCV, 16)] {
            guard let data = chunks[type], data.count == PNGFile.sized[type] else { continue }
            let stated = source.bigEndian32(at: data.lowerBound + offset)
            if stated > 0 { return Double(stated) / 10_000 }
        }
        return RGBSpace.usualPeak
    }

    /// The numbers of gAMA and cHRM (sections 11.3.2.1 and 11.3.2.2).
    private func scaledValues(_ data: Range<Int>) -> [Double] {
        stride(from: data.lowerBound, to: data.upperBound, by: 4).map {
            Double(source.bigEndian32(at: $0)) / 100_000
        }
    }

    /// libpng's limits.
    private static func isUsable(gamma: Double) -> Bool { (0.00016...6250).contains(gamma) }

    /// Returns nil for chromaticities that no colours have.
    private static func primaries(_ xy: [Double]) -> RGBSpace.Primaries? {
        let given = RGBSpace.Primaries(
            red: [xy[2], xy[3]], green: [xy[4], xy[5]], blue: [xy[6], xy[7]], white: [xy[0], xy[1]])
        return given.areConvertible ? given : nil
    }

    /// Without gamma, sRGB's curve applies; without chromaticities, sRGB's primaries.
    private static func colours(gamma: Double?, chromaticities: [Double]?) -> SourceColours {
        let primaries = chromaticities.flatMap { PNGFile.primaries($0) }
        guard let gamma = gamma.flatMap({ isUsable(gamma: $0) ? $0 : nil }) else {
            guard let primaries else { return .undeclared }
            return primaries.areThoseOfSRGB
                ? .sRGB(profile: nil) : .space(RGBSpace(primaries: primaries, curve: .sRGB))
        }
        return .space(RGBSpace(primaries: primaries ?? .sRGB, curve: .power(1 / gamma)))
    }

    /// The unpacked ICC profile; nil if it is missing, damaged, or for another kind of
    /// pixels.
    ///
    /// Checked here because libpng rejects profiles that other programs accept.
    var profile: [UInt8]? {
        guard let chunk = leadingChunks.first(where: { $0.type == .iCCP }), isIntact(chunk) else {
            return nil
        }
        // A name, a zero byte, the compression method, then a zlib stream.
        let data = source[chunk.data]
        guard let zero = data.firstIndex(of: 0), zero + 2 < data.endIndex else { return nil }
        guard let profile = PNGFile.unpacked(data[(zero + 2)...]) else { return nil }
        return ICCProfile.applies(profile, toChannels: colorType & 2 == 0 ? 1 : 3) ? profile : nil
    }

    /// Unpacks a zlib stream; nil if it is damaged or too long.
    static func unpacked(_ stream: Slice<UnsafeRawBufferPointer>) -> [UInt8]? {
        let stream = UnsafeRawBufferPointer(rebasing: stream)
        var length = 0
        guard let start = stream.baseAddress?.assumingMemoryBound(to: UInt8.self),
            let bytes = cdeflate_decompress(
                start, stream.count, CodecLimits.maximumMetadataBytes, &length)
        else { return nil }
        return ImageBytes(owning: bytes, count: length).withUnsafeBytes { [UInt8]($0) }
    }

    static func profileChunk(_ profile: [UInt8]) -> [UInt8] {
        var length = 0
        guard let packed = cdeflate_compress(profile, profile.count, 6, &length) else { return [] }
        let owner = ImageBytes(owning: packed, count: length)
        return chunk(.iCCP, Array("ICC\0\0".utf8) + owner.withUnsafeBytes { [UInt8]($0) })
    }
}

extension [ImagePiece] {
    /// The same bytes with adjacent ranges merged.
    var joined: [ImagePiece] {
        var result: [ImagePiece] = []
        for piece in self {
            if case .source(let range) = piece {
                result.append(source: range)
            } else {
                result.append(piece)
            }
        }
        return result
    }
}
