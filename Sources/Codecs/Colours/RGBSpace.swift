internal import CPNG
internal import CPixels

/// A space of red, green and blue by their chromaticities and one curve.
struct RGBSpace: Equatable {
    /// The encoding of light by samples.
    enum Curve: Equatable {
        /// IEC 61966-2-1.
        case sRGB
        /// Light is this power of a sample; above 0.
        case power(Double)
        /// SMPTE ST 240.
        case smpte240
        /// SMPTE ST 2084; `peak` is the brightest light in cd/m².
        case pq(peak: Double)
        /// ARIB STD-B67, likewise.
        case hlg(peak: Double)
    }

    /// The peak of light, cd/m², where a picture states none: that of the screen of ITU-R BT.2100.
    static let usualPeak = 1000.0

    /// CIE x and y.
    typealias Chromaticity = SIMD2<Double>

    struct Primaries: Equatable {
        var red: Chromaticity
        var green: Chromaticity
        var blue: Chromaticity
        var white: Chromaticity

        /// BT.709.
        static let sRGB = Primaries(
            red: [0.640, 0.330], green: [0.300, 0.600], blue: [0.150, 0.060],
            white: [0.3127, 0.3290])

        /// Whether white is one, and can be mixed of red, green and blue: it lies strictly inside
        /// their triangle. Within these limits the conversion to sRGB has factors below 60.
        var areConvertible: Bool {
            guard (0.2...0.5).contains(white.x), (0.25...0.5).contains(white.y),
                white.x + white.y <= 0.9, [red, green, blue].allSatisfy({ $0.y >= 0.00001 })
            else { return false }
            func side(_ from: Chromaticity, _ to: Chromaticity) -> Double {
                (to.x - from.x) * (white.y - from.y) - (to.y - from.y) * (white.x - from.x)
            }
            let sides = [side(red, green), side(green, blue), side(blue, red)]
            return sides.allSatisfy { $0 > 0.0001 } || sides.allSatisfy { $0 < -0.0001 }
        }

        /// Within the rounding of common encoders.
        var areThoseOfSRGB: Bool {
            let other = Primaries.sRGB
            return [red - other.red, green - other.green, blue - other.blue, white - other.white]
                .allSatisfy { abs($0.x) < 0.001 && abs($0.y) < 0.001 }
        }
    }

    var primaries: Primaries
    var curve: Curve

    var isOfHighDynamicRange: Bool {
        switch curve {
        case .pq, .hlg: true
        case .sRGB, .power, .smpte240: false
        }
    }
}

extension Raster {
    /// Converts the samples in place from another colour space to sRGB; from a high dynamic range
    /// by tone mapping.
    ///
    /// - Precondition: 8 or 16 bits, no palette, no transparent colour.
    mutating func convertToSRGB(
        from space: RGBSpace, _ interruption: Interruption
    ) throws(CodecError) {
        precondition(bitDepth >= 8 && !isIndexed)
        let depth = Int32(bitDepth)
        let (red, green) = (space.primaries.red, space.primaries.green)
        let (blue, white) = (space.primaries.blue, space.primaries.white)
        var primaries = cpixels_primaries(
            red: (red.x, red.y), green: (green.x, green.y), blue: (blue.x, blue.y),
            white: (white.x, white.y))
        var curve = cpixels_curve(kind: CPIXELS_CURVE_SRGB, exponent: 1)
        var peak: Double?
        switch space.curve {
        case .sRGB: break
        case .power(let exponent):
            curve = cpixels_curve(kind: CPIXELS_CURVE_POWER, exponent: exponent)
        case .smpte240: curve.kind = CPIXELS_CURVE_240M
        case .pq(let stated): (curve.kind, peak) = (CPIXELS_CURVE_PQ, stated)
        case .hlg(let stated): (curve.kind, peak) = (CPIXELS_CURVE_HLG, stated)
        }
        try change(interruption) {
            guard let peak else {
                return cpixels_convert_to_srgb($0, depth, &primaries, curve, $1)
            }
            return cpixels_tone_map_to_srgb($0, depth, &primaries, curve, peak, $1)
        }
    }
}
