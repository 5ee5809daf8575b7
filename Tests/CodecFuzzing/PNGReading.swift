internal import CPNG
internal import Glibc

/// Compares two ways of reading a PNG, with and without its pixels: its image data at once, and row
/// by row with libpng alone.
package enum PNGReading {
    /// A difference between the two ways.
    package struct Difference: Error, CustomStringConvertible {
        package let description: String
    }

    /// The way in which a PNG was read.
    package enum Way: Sendable {
        /// At once, for every output.
        case whole
        /// Row by row with libpng, at least once.
        case byRows
        case refused
    }

    private enum Output: CaseIterable {
        case nothing
        case same
    }

    private final class Reading {
        var image = cpng_image()
        var colours = cpng_colours()
        let status: ccodec_status
        let text: String

        init(
            _ source: UnsafeRawBufferPointer, _ output: Output, wholeBytes: UInt64,
            maximumPixels: Int, maximumWarnings: Int
        ) {
            var limits = cpng_limits(
                maximum_pixels: UInt64(maximumPixels), maximum_warnings: Int32(maximumWarnings),
                maximum_whole_bytes: wholeBytes, interruption: nil, lacks_end: false,
                unended: cpng_form())
            guard let start = source.baseAddress?.assumingMemoryBound(to: UInt8.self) else {
                status = CCODEC_TRUNCATED
                text = ""
                return
            }
            var message = [CChar](repeating: 0, count: Int(CCODEC_MESSAGE_BYTES))
            status =
                switch output {
                case .nothing: cpng_verify(start, source.count, &limits, &image, &message)
                case .same:
                    cpng_decode(
                        start, source.count, &limits, &image, &colours, &message)
                }
            text = message.withUnsafeBytes { text in
                String(decoding: text.prefix { $0 != 0 }, as: UTF8.self)
            }
        }

        deinit { cpng_image_free(&image) }

        var outcome: String { "\(status.rawValue) \(text)" }

        /// All fields but the pixels.
        private var form: [Int] {
            [
                Int(image.width), Int(image.height), Int(image.bit_depth), Int(image.color_type),
                image.row_bytes, Int(image.filter_distance), image.has_transparency ? 1 : 0,
                image.rows == nil ? 0 : 1,
            ]
        }

        func difference(from other: Reading) -> String? {
            guard outcome == other.outcome else { return "\(outcome) instead of \(other.outcome)" }
            guard status == CCODEC_OK else { return nil }
            guard form == other.form else { return "\(form) instead of \(other.form)" }
            let (its, mine) = (
                withUnsafeBytes(of: &other.colours) { Array($0) },
                withUnsafeBytes(of: &colours) { Array($0) }
            )
            guard mine == its else { return "other colours" }
            guard let rows = image.rows, let otherRows = other.image.rows else { return nil }
            for y in 0..<Int(image.height) {
                // Skips the spare byte.
                let start = y * (image.row_bytes + 1) + 1
                if memcmp(rows + start, otherRows + start, image.row_bytes) != 0 {
                    return "other pixels in row \(y)"
                }
            }
            return nil
        }
    }

    /// Whether an error is about codes that no encoder writes (RFC 1951 sections 3.2.6 and 3.2.7).
    /// zlib rejects them and libdeflate interprets them differently; the checksum still covers the
    /// pixels.
    package static func isOfReservedCodes(_ text: String) -> Bool {
        [
            "invalid literal/length code", "invalid distance code",
            "too many length or distance symbols", "invalid code lengths set",
            "invalid bit length repeat", "invalid literal/lengths set", "invalid distances set",
        ].contains { text.contains($0) }
    }

    /// Reads a PNG in both ways for every output, also with too little memory for one of them.
    ///
    /// - Parameters:
    ///   - source: Arbitrary bytes.
    ///   - maximumPixels: The number of pixels from which on it is rejected.
    ///   - maximumWarnings: The limit of warnings that affect no pixels.
    /// - Returns: The way in which it was read with enough memory.
    /// - Throws: The first difference.
    @discardableResult
    package static func check(
        _ source: UnsafeRawBufferPointer, maximumPixels: Int = 1 << 20, maximumWarnings: Int = 100
    ) throws(Difference) -> Way {
        func read(_ output: Output, _ wholeBytes: UInt64) -> Reading {
            Reading(
                source, output, wholeBytes: wholeBytes, maximumPixels: maximumPixels,
                maximumWarnings: maximumWarnings)
        }
        var way = Way.whole
        for output in Output.allCases {
            let alone = read(output, 0)
            guard !alone.image.is_whole else {
                throw Difference(description: "\(output): as a whole, where it may not be")
            }
            for wholeBytes in [.max, 40] as [UInt64] {
                let reading = read(output, wholeBytes)
                // It is then accepted, or rejected for an error after its image data.
                if isOfReservedCodes(alone.text) { continue }
                if let difference = reading.difference(from: alone) {
                    throw Difference(description: "\(output): \(difference)")
                }
                if wholeBytes == .max, reading.status != CCODEC_OK {
                    way = .refused
                } else if wholeBytes == .max, !reading.image.is_whole {
                    way = .byRows
                }
            }
        }
        return way
    }
}
