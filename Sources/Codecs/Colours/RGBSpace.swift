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
    }

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
}

extension Raster {
    /// Converts the samples in place from another colour space to sRGB.
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
        let curve =
            switch space.curve {
            case .sRGB: cpixels_curve(kind: CPIXELS_CURVE_SRGB, exponent: 1)
            case .power(let exponent): cpixels_curve(kind: CPIXELS_CURVE_POWER, exponent: exponent)
            case .smpte240: cpixels_curve(kind: CPIXELS_CURVE_240M, exponent: 1)
            }
        try change(interruption) { cpixels_convert_to_srgb($0, depth, &primaries, curve, $1) }
    }
}
