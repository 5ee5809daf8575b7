internal import CInterruption
internal import CPNG
import PrefetchModel

/// Makes sure that the whole source is there without decoding it, and takes it as it is.
///
/// A JPEG's markers are followed, so that data is missed that ends early, wherever that is. What is
/// not found there: flipped bits in the entropy-coded data, and encoders that made nonsense of
/// valid form. A PNG has checksums of its chunks, and its image data and that of its frames is
/// inflated: all rows have to be there. So of a PNG nothing is overlooked that decoding finds, but
/// for symbols that no encoder makes (RFC 1951 section 3.2.6 reserves them), which libdeflate takes
/// and zlib does not.
///
/// Whatever ``process(_:header:recipe:limits:cancellation:)`` accepts is accepted here, too. It allocates at most
/// about `memoryBytes`, which ``ImageHeader/structureMemoryBytes(within:)`` has given, and is cancelled as
/// that is. Synchronous, without shared state.
///
/// - Throws: as ``process(_:header:recipe:limits:cancellation:)`` does.
package func checkedStructure(
    of source: UnsafeRawBufferPointer, header: ImageHeader, limits: CodecLimits = CodecLimits(),
    memoryBytes: Int = .max, cancellation: Cancellation? = nil
) throws(CodecError) -> ProcessedImage {
    let interruption = Interruption(limits, cancellation)
    try interruption.look()
    if header.format == .jpeg {
        try JPEGFile(headerOf: source).checkScans(in: source, limits: limits)
    } else {
        let file = try PNGFile(source)
        try file.checkPieces()
        try file.checkChunks(in: source)
        try file.checkFrames(limits)
        // What is not made in the usual way is left to the decoder, which takes some of it: image data
        // with more than the rows, or without all of its checksum.
        let atOnce = max(memoryBytes - header.structureMemoryBytes(within: 0), 0)
        guard try file.isImageDataWhole(in: source, memoryBytes: atOnce, interruption) else {
            return try PNGProcessing(
                source: source, header: header, recipe: Recipe(encoding: .original),
                limits: limits, interruption: interruption
            ).verified()
        }
    }
    return ProcessedImage(
        output: .source, format: header.format, widthInPixels: header.widthInPixels,
        heightInPixels: header.heightInPixels, decodeDuration: .zero, encodeDuration: .zero)
}

extension JPEGFile {
    /// Follows the markers from the first scan's header to the end of the image (ITU-T T.81,
    /// annex B.2.1); what comes behind it is not looked at, as the decoder does.
    fileprivate func checkScans(
        in source: UnsafeRawBufferPointer, limits: CodecLimits
    ) throws(CodecError) {
        guard let frame, let first = segments.last else {
            throw .corrupt("no frame", isTruncated: false)
        }
        var missing = Set(frame.components)
        var scans = 1
        try note(first, of: frame, in: source, missing: &missing)
        var offset = first.range.upperBound
        var dataStart: Int? = offset
        while let start = JPEGFile.nextMarker(in: source, from: offset) {
            let marker = source[start + 1]
            // Restarts are part of a scan's data.
            if (0xD0...0xD7).contains(marker) || marker == 0x01 {
                offset = start + 2
                continue
            }
            if dataStart == start { throw .corrupt("a scan without data", isTruncated: false) }
            dataStart = nil
            if marker == 0xD9 {
                guard missing.isEmpty else {
                    throw .corrupt("a colour component has no data", isTruncated: false)
                }
                return
            }
            guard source.count - start >= 4 else { break }
            let length = max(source.bigEndian16(at: start + 2), 2)
            guard length <= source.count - start - 2 else { break }
            let segment = Segment(marker: marker, range: start..<start + 2 + length)
            offset = segment.range.upperBound
            switch marker {
            case 0xDA:
                scans += 1
                guard scans <= limits.maximumScans else {
                    throw .limitExceeded("more scans than allowed")
                }
                try note(segment, of: frame, in: source, missing: &missing)
                dataStart = offset
            case 0xD8, 0xC0...0xC3, 0xC5...0xC7, 0xC9...0xCB, 0xCD...0xCF:
                throw .corrupt("two frames", isTruncated: false)
            default: break
            }
        }
        throw .corrupt("the data ends before the image does", isTruncated: true)
    }

    /// Takes the components out of `missing` that a scan has the lowest frequency of: the others
    /// are refinements, without which there is a picture.
    private func note(
        _ scan: Segment, of frame: Frame, in source: UnsafeRawBufferPointer,
        missing: inout Set<UInt8>
    ) throws(CodecError) {
        let payload = UnsafeRawBufferPointer(rebasing: source[scan.payload])
        guard let count = payload.first.map(Int.init), (1...4).contains(count),
            payload.count == 4 + 2 * count
        else { throw .corrupt("bad scan header", isTruncated: false) }
        // Begins behind the lowest frequency, or adds bits to what an earlier scan brought.
        let isRefinement =
            frame.isProgressive
            && (payload[1 + 2 * count] != 0 || payload[3 + 2 * count] & 0xF0 != 0)
        for index in 0..<count {
            let component = payload[1 + 2 * index]
            guard frame.components.contains(component) else {
                throw .corrupt("a scan of a component that is not there", isTruncated: false)
            }
            if !isRefinement { missing.remove(component) }
        }
    }
}

extension PNGFile {
    /// Checks order and checksums (PNG third edition, sections 5.3 and 5.6).
    ///
    /// Damaged ancillary chunks are left to whoever shows the image, as the decoder leaves them
    /// out; transparency and the chunks of an animation are the exceptions that cost pixels.
    fileprivate func checkChunks(in source: UnsafeRawBufferPointer) throws(CodecError) {
        guard chunks.last?.type == .IEND else {
            throw .corrupt("the data ends before the image does", isTruncated: true)
        }
        guard isFormOfHeaderValid(in: source) else {
            throw .corrupt("bad header chunk", isTruncated: false)
        }
        var seen: Set<UInt32> = []
        for chunk in chunks {
            let type = chunk.type
            guard PNGFile.isWellFormed(type) else {
                throw .corrupt("invalid chunk type", isTruncated: false)
            }
            let isAncillary = type & 0x2000_0000 != 0
            if isAncillary && type != .tRNS { continue }
            // What stands behind the image data has no effect on it, whatever it is (section 5.6
            // forbids most of it), but for another header. So it is with more image data, if the
            // first has all rows, which only decoding tells.
            let isBehindImageData = seen.contains(.IDAT)
            let isRepeated = !seen.insert(type).inserted
            if isRepeated, type == .IHDR || type == .PLTE && !isBehindImageData {
                throw .corrupt("\(PNGFile.name(type)): out of place", isTruncated: false)
            }
            switch type {
            case .IHDR, .tRNS, .IEND: break
            case .PLTE:
                guard isBehindImageData || isPaletteTaken(ofBytes: chunk.data.count) else {
                    throw .corrupt("bad palette", isTruncated: false)
                }
            case .IDAT:
                guard colorType != 3 || seen.contains(.PLTE) else {
                    throw .corrupt("no palette", isTruncated: false)
                }
            default:
                guard isBehindImageData else {
                    throw .corrupt("unhandled critical chunk", isTruncated: false)
                }
            }
            // Where transparency counts: behind the image data it is too late to matter.
            guard isIntact(chunk, in: source) || (type == .tRNS && isBehindImageData) else {
                throw .corrupt("\(PNGFile.name(type)): CRC error", isTruncated: false)
            }
        }
        guard seen.contains(.IDAT) else { throw .corrupt("no image data", isTruncated: false) }
        try checkSilentDamage(in: source)
    }

    /// Whether the decoder goes on from a palette of so many bytes: with colours that are no indices
    /// it is a suggestion, but one that is empty is an error even then.
    private func isPaletteTaken(ofBytes count: Int) -> Bool {
        switch colorType {
        case 3: (3...768).contains(count) && count % 3 == 0
        case 2, 6: count > 0
        default: true
        }
    }

    /// Whether the image data and that of every frame are whole zlib streams of exactly the rows.
    fileprivate func isImageDataWhole(
        in source: UnsafeRawBufferPointer, memoryBytes: Int, _ interruption: Interruption
    ) throws(CodecError) -> Bool {
        // What stands behind another chunk is of no effect.
        let first = chunks.drop { $0.type != .IDAT }.prefix { $0.type == .IDAT }.map(\.data)
        guard
            try isWhole(
                first, width: width, height: height, in: source, memoryBytes: memoryBytes,
                interruption)
        else { return false }
        for frame in animation?.frames ?? [] {
            try interruption.look()
            guard
                try isWhole(
                    frame.data, width: frame.width, height: frame.height, in: source,
                    memoryBytes: memoryBytes, interruption)
            else { return false }
        }
        return true
    }

    private func isWhole(
        _ data: [Range<Int>], width: Int, height: Int, in source: UnsafeRawBufferPointer,
        memoryBytes: Int, _ interruption: Interruption
    ) throws(CodecError) -> Bool {
        guard let start = source.baseAddress?.assumingMemoryBound(to: UInt8.self) else {
            return false
        }
        let parts = data.map { cpng_part(bytes: start + $0.lowerBound, length: $0.count) }
        var form = cpng_form(
            width: UInt32(clamping: width), height: UInt32(clamping: height),
            bits_a_pixel: UInt32(clamping: channels * bitDepth), is_interlaced: isInterlaced)
        var isWhole = false
        let status = parts.withUnsafeBufferPointer { parts -> cpng_status in
            guard let first = parts.baseAddress else { return CPNG_OK }
            return cpng_check_rows(
                first, parts.count, &form, memoryBytes, interruption.pointer, &isWhole)
        }
        switch status {
        case CPNG_OK: return isWhole
        case CPNG_INTERRUPTED: throw interruption.error
        default: throw .outOfMemory("no memory for the check")
        }
    }

    /// Whether colour type and bit depth go together, and the methods are those that exist.
    private func isFormOfHeaderValid(in source: UnsafeRawBufferPointer) -> Bool {
        let depths: ClosedRange<Int> =
            switch colorType {
            case 0: 1...16
            case 3: 1...8
            default: 8...16
            }
        return depths.contains(bitDepth) && source[26] == 0 && source[27] == 0 && source[28] <= 1
    }

    /// Whether all four bytes are letters (section 5.3).
    private static func isWellFormed(_ type: UInt32) -> Bool {
        (0..<4).allSatisfy { index in
            let lowercase = UInt8(truncatingIfNeeded: type >> (8 * index)) | 0x20
            return (0x61...0x7A).contains(lowercase)
        }
    }
}
