internal import CJPEG
internal import CReferenceDecoders
internal import Glibc

/// Invariants of JPEGs that are transcoded without storing coefficients, for arbitrary bytes. The
/// way through libjpeg's coefficients must give the same verdict, text and an equivalent file.
///
/// Ordinary tests and the fuzz target check them.
package struct TranscoderInvariants {
    /// A violated invariant.
    package struct Violation: Error, CustomStringConvertible {
        package let description: String
    }

    /// The common result of both ways.
    package struct Outcome {
        package let isTaken: Bool
        /// Whether the transcoder succeeded without falling back.
        package let isTranscoded: Bool
        /// The transcoder's output; empty if there is none.
        package let bytes: [UInt8]
        /// The output through libjpeg's coefficients; empty if there is none.
        package let reference: [UInt8]
    }

    /// The limit of a result.
    private static let mostBytes = 1 << 30

    /// Writes a JPEG of this quality in both ways and compares the results.
    ///
    /// - Parameters:
    ///   - source: Arbitrary bytes.
    ///   - quality: libjpeg's, 1…100.
    ///   - maximumPixels: The number of pixels from which on it is rejected.
    ///   - hasPreview: Whether to make a small picture as well.
    /// - Returns: The result of the transcoder.
    /// - Throws: The first difference.
    @discardableResult package static func check(
        _ source: UnsafeRawBufferPointer, quality: Int, maximumPixels: Int = 1 << 30,
        hasPreview: Bool = false
    ) throws(Violation) -> Outcome {
        var ours = cjpeg_preview()
        var theirs = cjpeg_preview()
        defer {
            free(ours.pixels)
            free(theirs.pixels)
        }
        let (one, text) = requantised(source, quality, maximumPixels, hasPreview, false, &ours)
        let (other, otherText) = requantised(
            source, quality, maximumPixels, hasPreview, true, &theirs)
        defer {
            free(one.result.bytes)
            free(other.result.bytes)
        }
        try require(
            one.status == other.status && text == otherText,
            "\(one.status) “\(text)” instead of \(other.status) “\(otherText)”")
        try require(
            one.result.source_end == other.result.source_end
                && one.result.width == other.result.width
                && one.result.height == other.result.height, "other facts")
        try require(!other.result.was_transcoded, "no coefficients where they were asked for")
        try require(
            (one.result.bytes == nil) == (other.result.bytes == nil),
            "a file, or none, from one way only")
        try comparePreviews(ours, theirs)
        let made = bytes(of: one.result), reference = bytes(of: other.result)
        if one.status == CCODEC_OK, !made.isEmpty { try compare(made, reference) }
        return Outcome(
            isTaken: one.status == CCODEC_OK, isTranscoded: one.result.was_transcoded, bytes: made,
            reference: reference)
    }

    private static func require(
        _ condition: Bool, _ text: @autoclosure () -> String
    ) throws(Violation) {
        if !condition { throw Violation(description: text()) }
    }

    private static func requantised(
        _ source: UnsafeRawBufferPointer, _ quality: Int, _ maximumPixels: Int, _ hasPreview: Bool,
        _ takesCoefficients: Bool, _ preview: inout cjpeg_preview
    ) -> ((status: ccodec_status, result: cjpeg_result), String) {
        var result = cjpeg_result()
        var rewriting = cjpeg_rewriting()
        rewriting.quality = Int32(quality)
        rewriting.orientation = 1
        rewriting.writes_own_segments = true
        rewriting.takes_coefficients = takesCoefficients
        rewriting.maximum_output = mostBytes
        var message = [CChar](repeating: 0, count: Int(CCODEC_MESSAGE_BYTES))
        let status = withUnsafeMutablePointer(to: &preview) { preview in
            var limits = cjpeg_limits(
                maximum_pixels: UInt64(maximumPixels), maximum_scans: 100, maximum_warnings: 100,
                maximum_memory_bytes: 1 << 31, least_own_pixels: 0, interruption: nil,
                preview: hasPreview ? preview : nil, inks: cjpeg_inks())
            guard let start = source.baseAddress?.assumingMemoryBound(to: UInt8.self) else {
                return CCODEC_CORRUPT
            }
            return cjpeg_requantise(start, source.count, &limits, &rewriting, &result, &message)
        }
        let text = message.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
        return ((status, result), String(decoding: text, as: UTF8.self))
    }

    private static func bytes(of result: cjpeg_result) -> [UInt8] {
        [UInt8](
            UnsafeBufferPointer(start: result.bytes, count: result.bytes == nil ? 0 : result.length)
        )
    }

    private static func compare(_ one: [UInt8], _ other: [UInt8]) throws(Violation) {
        var message = [CChar](repeating: 0, count: Int(CREFERENCE_MESSAGE_BYTES))
        let isSame = creference_is_recoded(one, one.count, other, other.count, &message)
        let text = message.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
        try require(isSame, String(decoding: text, as: UTF8.self))
    }

    private static func comparePreviews(
        _ one: cjpeg_preview, _ other: cjpeg_preview
    ) throws(Violation) {
        try require(
            one.is_complete == other.is_complete && one.width == other.width
                && one.height == other.height && one.channels == other.channels
                && one.last_column == other.last_column && one.last_row == other.last_row,
            "another small picture")
        guard one.is_complete, let ours = one.pixels, let theirs = other.pixels else { return }
        let count = Int(one.width) * Int(one.height) * Int(one.channels)
        try require(memcmp(ours, theirs, count) == 0, "other pixels of a small picture")
    }

    /// Creates a baseline JPEG from partly smooth, partly noisy pixels, with libjpeg.
    ///
    /// - Parameters:
    ///   - width: In pixels.
    ///   - height: In pixels.
    ///   - sampling: The sampling factors of the first component; nil for a grey picture.
    ///   - restartInterval: In MCUs; 0 for none.
    ///   - quality: libjpeg's, 1…100.
    ///   - isOptimised: Whether to optimise the Huffman tables.
    ///   - seed: The seed of the pixels.
    /// - Returns: The file.
    package static func baseline(
        width: Int, height: Int, sampling: (horizontal: Int, vertical: Int)?,
        restartInterval: Int = 0,
        quality: Int = 95, isOptimised: Bool = false, seed: Int = 1
    ) -> [UInt8] {
        var baseline = creference_baseline(
            width: UInt32(width), height: UInt32(height),
            horizontal: Int32(sampling?.horizontal ?? 0),
            vertical: Int32(sampling?.vertical ?? 0), restart_interval: UInt32(restartInterval),
            quality: Int32(quality), is_optimised: isOptimised, seed: UInt64(seed))
        var count = 0
        guard let bytes = creference_make_baseline(&baseline, &count) else { return [] }
        defer { free(bytes) }
        return [UInt8](UnsafeBufferPointer(start: bytes, count: count))
    }
}
