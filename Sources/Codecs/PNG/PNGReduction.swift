internal import CPNG

/// Stores the same pixels in fewer bits (PNG third edition, section 4.4). It drops full alpha and
/// unused colour, narrows 16-bit samples that were scaled from 8, and uses palettes.
///
/// The displayed pixels stay identical, including colours under full transparency. Chunks that
/// depend on the colour type are converted with it.
///
/// Some chunks limit the changes. A profile or code points for one kind of colour space (iCCP, cICP
/// and their companions) prevent changes between grey and colour. A background or histogram (bKGD,
/// hIST), and unknown chunks that are not safe to copy (section 14.2), prevent every change.
///
/// All decisions depend only on displayed pixels and chunks, so a file that was reduced once does
/// not change again.
struct PNGReduction {
    private(set) var chunks: [PNGChunk]
    /// Whether grey may become colour, and colour grey.
    private let changesColor: Bool
    /// The used palette entries, once known. Finding them costs up to a quarter of the compression
    /// time.
    private var paletteColors: [UInt32]?

    /// Chunks that are valid for any colour type, or are converted here.
    private static let understood: Set<UInt32> = [
        .gAMA, .cHRM, .sRGB, .iCCP, .sBIT, .tRNS, .cICP, .mDCV, .cLLI, .tIME, .sPLT,
    ]

    /// Returns nil if a chunk prevents every change.
    init?(chunks: [PNGChunk], colorType: Int32, bitDepth: Int32) {
        let isUnderstood = chunks.allSatisfy {
            $0.isSafeToCopy || PNGReduction.understood.contains($0.type)
                || $0.type == .PLTE && colorType == 3
        }
        guard isUnderstood else { return nil }
        self.chunks = chunks
        let bound: Set<UInt32> = [.iCCP, .cICP, .mDCV, .cLLI]
        changesColor = !chunks.contains { bound.contains($0.type) }
        if colorType != 3, let key = data(of: .tRNS) {
            // Only the bits of the depth count (section 11.3.1.1).
            let mask = 1 << UInt16(clamping: bitDepth) &- 1
            replace(
                .tRNS,
                by: key.enumerated().map {
                    $0.element & UInt8(truncatingIfNeeded: $0.offset % 2 == 0 ? mask >> 8 : mask)
                })
        }
    }

    private func data(of type: UInt32) -> [UInt8]? { chunks.first { $0.type == type }?.data }

    private mutating func remove(_ type: UInt32) { chunks.removeAll { $0.type == type } }

    private mutating func replace(_ type: UInt32, by data: [UInt8]) {
        for index in chunks.indices where chunks[index].type == type {
            chunks[index] = PNGChunk(type: type, data: data)
        }
    }

    // MARK: - Reductions that always help

    /// Applies the reductions that make every file smaller. They use fewer bytes a pixel in the
    /// same order, and remove unused and duplicate palette entries.
    mutating func simplify(_ rows: inout cpng_image) {
        if cpng_is_eight_bit(&rows) {
            cpng_make_eight_bit(&rows)
            narrowKey()
            keepSignificantBits(from: rows.color_type, to: rows)
        }
        let before = rows.color_type
        let dropsAlpha = cpng_is_opaque(&rows)
        let dropsColor = changesColor && cpng_is_grey(&rows)
        if dropsAlpha || dropsColor {
            cpng_drop_channels(&rows, dropsColor, dropsAlpha)
            if dropsColor { makeKeyGrey() }
            keepSignificantBits(from: before, to: rows)
        }
        if rows.color_type == 3 { compactPalette(&rows) }
    }

    /// Converts the transparent colour from 16-bit samples. A colour that is not scaled from 8 bits
    /// matches no pixel here, since all pixels are.
    private mutating func narrowKey() {
        guard let key = data(of: .tRNS) else { return }
        let highs = stride(from: 0, to: key.count - 1, by: 2).map { key[$0] }
        let lows = stride(from: 1, to: key.count, by: 2).map { key[$0] }
        if highs == lows {
            replace(.tRNS, by: lows.flatMap { [0, $0] })
        } else {
            remove(.tRNS)
        }
    }

    private mutating func makeKeyGrey() {
        guard let key = data(of: .tRNS), key.count == 6 else { return }
        if key[0..<2] == key[2..<4], key[0..<2] == key[4..<6] {
            replace(.tRNS, by: Array(key[0..<2]))
        } else {
            remove(.tRNS)
        }
    }

    private mutating func compactPalette(_ rows: inout cpng_image) {
        guard let entries = data(of: .PLTE).map({ $0.count / 3 }) else { return }
        let colors = colors(of: &rows, most: 256)
        paletteColors = colors
        guard !colors.isEmpty else { return }
        if colors.count < entries {
            var meaning = meaning(of: rows)
            cpng_make_indices(
                &rows, &meaning, colors, colors.indices.map { UInt8($0) }, Int32(colors.count),
                rows.bit_depth, 3)
        }
        setPalette(colors)
    }

    // MARK: - Palettes and fewer bits

    /// A conversion of each pixel to one sample with fewer bits.
    struct Indexing {
        fileprivate let colors: [UInt32]
        fileprivate let values: [UInt8]
        fileprivate let bitDepth: Int32
        fileprivate let colorType: Int32
        /// The transparent grey; nil if none.
        fileprivate let key: UInt8?
    }

    /// Returns a conversion to fewer bits, or to the same number without a palette; nil if there is
    /// none.
    ///
    /// Most files become smaller, but not all, since filters work on whole bytes and on similar
    /// neighbouring values. So the caller has to try it.
    func indexing(_ rows: inout cpng_image) -> Indexing? {
        guard rows.bit_depth <= 8 else { return nil }
        let isGrey = rows.color_type & 2 == 0
        let bits = rows.bit_depth * [1, 1, 3, 1, 2, 1, 4][Int(rows.color_type)]
        // An 8-bit palette does not improve 8-bit grey.
        let colors =
            paletteColors
            ?? colors(of: &rows, most: rows.color_type == 0 ? 1 << (bits / 2) : 256)
        guard !colors.isEmpty else { return nil }
        let grey = isGrey || changesColor ? greyIndexing(colors) : nil
        let palette =
            !isGrey || changesColor
            ? paletteIndexing(colors, keepsOrder: rows.color_type == 3) : nil
        if let grey, grey.bitDepth <= palette?.bitDepth ?? 8 {
            return grey.bitDepth < bits || grey.bitDepth == bits && rows.color_type == 3
                ? grey : nil
        }
        return palette.flatMap { $0.bitDepth < bits ? $0 : nil }
    }

    private func greyIndexing(_ colors: [UInt32]) -> Indexing? {
        let levels = colors.map { UInt8(truncatingIfNeeded: $0 >> 8) }
        for (color, level) in zip(colors, levels) where color >> 8 != UInt32(level) * 0x010101 {
            return nil
        }
        var key: UInt8?
        let transparent = zip(colors, levels).filter { $0.0 & 255 != 255 }
        if let (color, level) = transparent.first {
            guard transparent.count == 1, color & 255 == 0,
                !colors.contains(color | 255)
            else { return nil }
            key = level
        }
        for depth in [1, 2, 4, 8] {
            let step = UInt8(255 / (1 << depth - 1))
            guard levels.allSatisfy({ $0 % step == 0 }) else { continue }
            return Indexing(
                colors: colors, values: levels.map { $0 / step }, bitDepth: Int32(depth),
                colorType: 0, key: key.map { $0 / step })
        }
        return nil
    }

    /// Sorts transparent colours first, which shortens tRNS (PNG section 11.3.1.1), then by luma,
    /// which makes neighbours similar. An existing palette keeps its order, which may be a good
    /// one.
    private func paletteIndexing(_ colors: [UInt32], keepsOrder: Bool) -> Indexing {
        let ordered =
            keepsOrder
            ? colors
            : colors.sorted {
                let left = ($0 & 255 == 255 ? 1 : 0, PNGReduction.light($0), $0)
                let right = ($1 & 255 == 255 ? 1 : 0, PNGReduction.light($1), $1)
                return left < right
            }
        let depth: Int32 =
            switch ordered.count {
            case ...2: 1
            case ...4: 2
            case ...16: 4
            default: 8
            }
        return Indexing(
            colors: ordered, values: ordered.indices.map { UInt8($0) }, bitDepth: depth,
            colorType: 3, key: nil)
    }

    /// The luma in thousandths, with the weights of Rec. 601.
    private static func light(_ color: UInt32) -> UInt32 {
        299 * (color >> 24) + 587 * (color >> 16 & 255) + 114 * (color >> 8 & 255)
    }

    /// Converts rows, or a sample of them.
    func apply(_ indexing: Indexing, to rows: inout cpng_image) {
        var meaning = meaning(of: rows)
        cpng_make_indices(
            &rows, &meaning, indexing.colors, indexing.values, Int32(indexing.colors.count),
            indexing.bitDepth, indexing.colorType)
    }

    /// Returns the chunks for the converted rows.
    func changed(by indexing: Indexing, from colorType: Int32) -> PNGReduction {
        var result = self
        if indexing.colorType == 3 {
            result.setPalette(indexing.colors)
        } else {
            result.remove(.PLTE)
            result.remove(.tRNS)
            if let key = indexing.key {
                result.chunks.append(PNGChunk(type: .tRNS, data: [0, key]))
            }
        }
        var target = cpng_image()
        target.color_type = indexing.colorType
        target.bit_depth = indexing.bitDepth
        result.keepSignificantBits(from: colorType, to: target)
        return result
    }

    /// Replaces palette and transparency. They follow the colour space, with transparency last (PNG
    /// section 5.6).
    private mutating func setPalette(_ colors: [UInt32]) {
        let palette = colors.flatMap { color in
            [24, 16, 8].map { UInt8(truncatingIfNeeded: color >> UInt32($0)) }
        }
        var transparency = colors.map { UInt8($0 & 255) }
        while transparency.last == 255 { transparency.removeLast() }
        guard data(of: .PLTE) != palette || data(of: .tRNS) ?? [] != transparency else { return }
        remove(.PLTE)
        remove(.tRNS)
        chunks.append(PNGChunk(type: .PLTE, data: palette))
        if !transparency.isEmpty { chunks.append(PNGChunk(type: .tRNS, data: transparency)) }
    }

    // MARK: - Significant bits

    /// Converts sBIT (PNG section 11.3.2.7) to the new colour type, with values limited to the
    /// sample depth. An invalid sBIT is dropped.
    private mutating func keepSignificantBits(from colorType: Int32, to rows: cpng_image) {
        guard let bits = data(of: .sBIT) else { return }
        guard bits.count == [1, 0, 3, 3, 2, 0, 4][Int(colorType)] else {
            remove(.sBIT)
            return
        }
        let depth = rows.color_type == 3 ? 8 : UInt8(clamping: rows.bit_depth)
        let wasColor = colorType & 2 != 0
        var color = wasColor ? Array(bits[..<3]) : Array(repeating: bits[0], count: 3)
        if rows.color_type & 2 == 0 { color = [max(color[0], color[1], color[2])] }
        let alpha = rows.color_type & 4 == 0 ? [] : [bits[bits.count - 1]]
        replace(.sBIT, by: (color + alpha).map { min($0, depth) })
    }

    // MARK: - Pixel values

    /// Returns the colours in use; empty for more than `most`, or if an index has no palette entry.
    private func colors(of rows: inout cpng_image, most: Int32) -> [UInt32] {
        [UInt32](unsafeUninitializedCapacity: 256) { buffer, count in
            guard let start = buffer.baseAddress else { return }
            var meaning = meaning(of: rows)
            count = Int(cpng_colors(&rows, &meaning, most, start))
        }
    }

    private func meaning(of rows: cpng_image) -> cpng_colours {
        var meaning = cpng_colours()
        let transparency = data(of: .tRNS) ?? []
        guard rows.color_type == 3 else {
            let key = stride(from: 0, to: transparency.count - 1, by: 2).map {
                UInt16(transparency[$0]) << 8 | UInt16(transparency[$0 + 1])
            }
            if rows.color_type == 0, key.count == 1 {
                meaning.has_key = true
                meaning.key.0 = key[0]
            } else if rows.color_type == 2, key.count == 3 {
                meaning.has_key = true
                meaning.key = (key[0], key[1], key[2])
            }
            return meaning
        }
        let colors = data(of: .PLTE) ?? []
        let count = min(256, colors.count / 3)
        meaning.entries = Int32(count)
        withUnsafeMutableBytes(of: &meaning.palette) { bytes in
            let palette = bytes.bindMemory(to: UInt32.self)
            for index in 0..<count {
                let alpha = index < transparency.count ? transparency[index] : 255
                palette[index] =
                    UInt32(colors[3 * index]) << 24 | UInt32(colors[3 * index + 1]) << 16
                    | UInt32(colors[3 * index + 2]) << 8 | UInt32(alpha)
            }
        }
        return meaning
    }
}

/// A chunk without its length and CRC.
struct PNGChunk {
    let type: UInt32
    let data: [UInt8]

    /// Bit 5 of the last letter (PNG section 5.4): valid for other image data too.
    var isSafeToCopy: Bool { type & 0x20 != 0 }

    /// Splits a sequence of complete chunks.
    static func list(_ bytes: [UInt8]) -> [PNGChunk] {
        bytes.withUnsafeBytes { source in
            var chunks: [PNGChunk] = []
            var offset = 0
            while source.count - offset >= 12 {
                let length = source.bigEndian32(at: offset)
                guard length <= source.count - offset - 12 else { break }
                chunks.append(
                    PNGChunk(
                        type: UInt32(source.bigEndian32(at: offset + 4)),
                        data: Array(source[offset + 8..<offset + 8 + length])))
                offset += 12 + length
            }
            return chunks
        }
    }
}
