internal import CInterruption
internal import CPNG

extension PNGFile {
    /// Checks order and checksums (PNG third edition, sections 5.3 and 5.6).
    ///
    /// Damaged ancillary chunks are accepted, since decoders skip them. Transparency and animation
    /// chunks are refused, because skipping them loses pixels.
    func checkChunks() throws(CodecError) {
        guard chunks.last?.type == .IEND || lacksEnd else { throw .cutImage }
        guard isFormOfHeaderValid else { throw .broken("bad header chunk") }
        var seen: Set<UInt32> = []
        for chunk in chunks {
            let type = chunk.type
            guard PNGFile.isWellFormed(type) else { throw .broken("invalid chunk type") }
            let isAncillary = type & 0x2000_0000 != 0
            if isAncillary && type != .tRNS { continue }
            // Chunks after the image data have no effect on it, except another header, although
            // section 5.6 forbids most of them. Further image data is also harmless if the first
            // has all rows, which only decoding shows.
            let isBehindImageData = seen.contains(.IDAT)
            let isRepeated = !seen.insert(type).inserted
            if isRepeated, type == .IHDR || type == .PLTE && !isBehindImageData {
                throw .broken("\(PNGFile.name(type)): out of place")
            }
            switch type {
            case .IHDR, .tRNS, .IEND: break
            case .PLTE:
                guard isBehindImageData || isPaletteTaken(ofBytes: chunk.data.count) else {
                    throw .broken("bad palette")
                }
            case .IDAT:
                guard colorType != 3 || seen.contains(.PLTE) else { throw .broken("no palette") }
            default:
                guard isBehindImageData else { throw .broken("unhandled critical chunk") }
            }
            // Transparency after the image data is ignored, so its damage does not matter.
            guard isIntact(chunk) || type == .IEND || (type == .tRNS && isBehindImageData) else {
                throw .broken("\(PNGFile.name(type)): CRC error")
            }
        }
        guard seen.contains(.IDAT) || cutImageData != nil else { throw .broken("no image data") }
        guard colorType != 3 || seen.contains(.PLTE) else { throw .broken("no palette") }
        try checkIgnoredDamage()
    }

    /// Whether the decoder accepts a palette of this many bytes. For truecolour it is a suggestion,
    /// but an empty one is still an error.
    private func isPaletteTaken(ofBytes count: Int) -> Bool {
        switch colorType {
        case 3: (3...768).contains(count) && count % 3 == 0
        case 2, 6: count > 0
        default: true
        }
    }

    /// Whether the image data, and the data of every frame, are complete zlib streams of exactly
    /// the rows.
    func isImageDataWhole(
        memoryBytes: Int, _ interruption: Interruption
    ) throws(CodecError) -> Bool {
        guard try imageData(memoryBytes: memoryBytes, interruption) == CPNG_DATA_WHOLE else {
            return false
        }
        for frame in animation?.frames ?? [] {
            try interruption.look()
            let form = form(frame.width, frame.height)
            guard try check(frame.data, form, memoryBytes, interruption) == CPNG_DATA_WHOLE
            else { return false }
        }
        return true
    }

    /// The state of the static image's data.
    func imageData(
        memoryBytes: Int, _ interruption: Interruption
    ) throws(CodecError) -> cpng_data {
        // Image data that another chunk separates from the first is ignored.
        let first = chunks.drop { $0.type != .IDAT }.prefix { $0.type == .IDAT }.map(\.data)
        let cut = cutImageData.map { [$0] } ?? []
        return try check(first + cut, form(width, height), memoryBytes, interruption)
    }

    private func check(
        _ data: [Range<Int>], _ form: cpng_form, _ memoryBytes: Int, _ interruption: Interruption
    ) throws(CodecError) -> cpng_data {
        let start = try source.start
        let parts = data.map { cpng_part(bytes: start + $0.lowerBound, length: $0.count) }
        var form = form
        var state = CPNG_DATA_OTHER
        let status = parts.withUnsafeBufferPointer { parts -> ccodec_status in
            guard let first = parts.baseAddress else { return CCODEC_OK }
            return cpng_check_rows(
                first, parts.count, &form, memoryBytes, interruption.pointer, &state)
        }
        try interruption.check(status, noMemory: "no memory for the check")
        return state
    }

    /// The pixels of the static image, or of a frame.
    private func form(_ width: Int, _ height: Int) -> cpng_form {
        cpng_form(
            width: UInt32(clamping: width), height: UInt32(clamping: height),
            bits_a_pixel: UInt32(clamping: channels * bitDepth), is_interlaced: isInterlaced)
    }

    /// The pixels of the static image.
    var form: cpng_form { form(width, height) }

    /// Whether the bit depth is valid for the colour type, and the methods are defined ones.
    private var isFormOfHeaderValid: Bool {
        let depths: ClosedRange<Int> =
            switch colorType {
            case 0: 1...16
            case 3: 1...8
            default: 8...16
            }
        return depths.contains(bitDepth) && source[26] == 0 && source[27] == 0 && source[28] <= 1
    }

    /// Whether all four bytes are letters (section 5.3).
    static func isWellFormed(_ type: UInt32) -> Bool {
        (0..<4).allSatisfy { index in
            let lowercase = UInt8(truncatingIfNeeded: type >> (8 * index)) | 0x20
            return (0x61...0x7A).contains(lowercase)
        }
    }
}
