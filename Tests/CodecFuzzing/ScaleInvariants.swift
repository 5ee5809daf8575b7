internal import CJPEG
internal import Glibc

/// Invariants of JPEGs decoded at a fraction of their size from coefficients read by our decoder,
/// for arbitrary bytes. libjpeg alone must give the same verdict, text and pixels.
///
/// Ordinary tests and the fuzz target check them.
package struct ScaleInvariants {
    /// A violated invariant.
    package struct Violation: Error, CustomStringConvertible {
        package let description: String
    }

    /// The common result of both ways.
    package struct Outcome {
        /// Whether each scale was decoded.
        package let isTaken: Bool
        /// Whether our decoder read the file without falling back.
        package let isReadHere: Bool
    }

    /// The divisors of the sides.
    private static let scales: [UInt32] = [1, 2, 4, 8]

    /// Decodes at full, half, quarter and eighth size, one by one and together, in both ways, and
    /// compares the results.
    ///
    /// - Parameters:
    ///   - source: Arbitrary bytes.
    ///   - maximumPixels: The number of pixels from which on it is rejected.
    /// - Returns: The result of our decoder.
    /// - Throws: The first difference.
    @discardableResult package static func check(
        _ source: UnsafeRawBufferPointer, maximumPixels: Int = 1 << 30
    ) throws(Violation) -> Outcome {
        var outcome: Outcome?
        for scale in scales {
            let ours = Decoded(source, [scale], maximumPixels, isOwn: true)
            let theirs = Decoded(source, [scale], maximumPixels, isOwn: false)
            defer { Decoded.free([ours, theirs]) }
            try compare(ours, theirs, "1/\(scale)")
            let (isTaken, isReadHere) = (ours.status == CCODEC_OK, ours.isReadHere)
            try require(
                outcome == nil
                    || outcome?.isTaken == isTaken && outcome?.isReadHere == isReadHere,
                "another verdict at 1/\(scale)")
            outcome = Outcome(isTaken: isTaken, isReadHere: isReadHere)
        }
        guard let outcome else { return Outcome(isTaken: false, isReadHere: false) }
        let ours = Decoded(source, scales, maximumPixels, isOwn: true)
        let theirs = Decoded(source, scales, maximumPixels, isOwn: false)
        defer { Decoded.free([ours, theirs]) }
        try compare(ours, theirs, "all scales")
        try require(ours.isReadHere == outcome.isReadHere, "all scales have another reader")
        return outcome
    }

    private static func require(
        _ condition: Bool, _ text: @autoclosure () -> String
    ) throws(Violation) {
        if !condition { throw Violation(description: text()) }
    }

    /// The result of one call.
    private struct Decoded {
        let status: ccodec_status
        let text: String
        let results: [cjpeg_result]

        /// Decodes the source.
        ///
        /// - Parameters:
        ///   - source: Arbitrary bytes.
        ///   - scales: The divisors of the sides; a single one uses the ordinary call.
        ///   - maximumPixels: The number of pixels from which on it is rejected.
        ///   - isOwn: Whether to use our decoder where possible, instead of libjpeg alone.
        init(
            _ source: UnsafeRawBufferPointer, _ scales: [UInt32], _ maximumPixels: Int, isOwn: Bool
        ) {
            var results = [cjpeg_result](repeating: cjpeg_result(), count: scales.count)
            var message = [CChar](repeating: 0, count: Int(CCODEC_MESSAGE_BYTES))
            var limits = cjpeg_limits(
                maximum_pixels: UInt64(maximumPixels), maximum_scans: 100, maximum_warnings: 100,
                maximum_memory_bytes: 1 << 31, least_own_pixels: isOwn ? 0 : .max,
                interruption: nil, preview: nil, inks: cjpeg_inks())
            let start = source.baseAddress?.assumingMemoryBound(to: UInt8.self)
            switch (start, scales.count) {
            case (nil, _): status = CCODEC_CORRUPT
            case (let start?, 1):
                status = cjpeg_decode_scaled(
                    start, source.count, &limits, 0, scales[0], &results[0], &message)
            case (let start?, let count):
                status = cjpeg_decode_scales(
                    start, source.count, &limits, 0, scales, count, &results, &message)
            }
            let bytes = message.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
            text = String(decoding: bytes, as: UTF8.self)
            self.results = results
        }

        /// Whether our decoder read all scales.
        var isReadHere: Bool { results.allSatisfy(\.was_read_here) }

        static func free(_ all: [Decoded]) {
            for decoded in all {
                for result in decoded.results { Glibc.free(result.bytes) }
            }
        }
    }

    private static func compare(
        _ ours: Decoded, _ theirs: Decoded, _ name: String
    ) throws(Violation) {
        try require(
            ours.status == theirs.status && ours.text == theirs.text,
            "\(name): \(ours.status) “\(ours.text)” instead of \(theirs.status) “\(theirs.text)”")
        for (one, other) in zip(ours.results, theirs.results) {
            try require(!other.was_read_here, "\(name): not by libjpeg where that was asked for")
            try require(
                one.source_end == other.source_end && one.width == other.width
                    && one.height == other.height && one.channels == other.channels
                    && one.was_cmyk == other.was_cmyk && one.length == other.length,
                "\(name): other facts")
            try require(
                (one.bytes == nil) == (other.bytes == nil),
                "\(name): pixels, or none, from one way only")
            guard let pixels = one.bytes, let reference = other.bytes else { continue }
            try require(
                memcmp(pixels, reference, one.length) == 0,
                "\(name): other pixels of \(one.width)×\(one.height)")
        }
    }
}
