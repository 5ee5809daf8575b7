internal import CPNG
internal import CPixels

/// The colour space that a container's code points (CICP, ITU-T H.273) describe.
enum CodePointColours {
    /// sRGB, or indistinguishable from it.
    case sRGB
    /// A space of standard dynamic range, convertible to sRGB.
    case converted(Space)
    /// Not convertible; the text gives the reason and follows the name of the format.
    case unconverted(String)

    struct Space {
        var primaries: cpixels_primaries
        var curve: cpixels_curve
    }

    /// The code for unspecified, read as sRGB's value.
    private static let unspecified = 2

    /// Classifies a pair of code points.
    ///
    /// Video transfer curves (1, 6, 11, 12, 14, 15) are treated as sRGB's, as browsers do. They are
    /// meant for screens that show them darker than the light that they encode.
    init(primaries: Int, transfer: Int) {
        let name = "CICP \(primaries)/\(transfer)"
        let curve: cpixels_curve
        switch transfer {
        case 1, CodePointColours.unspecified, 6, 11...15: curve = CPIXELS_CURVE_SRGB
        case 4: curve = CPIXELS_CURVE_GAMMA_2_2
        case 5: curve = CPIXELS_CURVE_GAMMA_2_8
        case 7: curve = CPIXELS_CURVE_240M
        case 8: curve = CPIXELS_CURVE_LINEAR
        case 16, 18:
            self = .unconverted(
                "of a high dynamic range (\(transfer == 16 ? "PQ" : "HLG"), \(name)), which is kept by same and "
                    + "original only")
            return
        default:
            self = .unconverted("of colours that are not known (\(name))")
            return
        }
        guard let chromaticities = CodePointColours.chromaticities(primaries) else {
            self = .unconverted("of colours that are not known (\(name))")
            return
        }
        let isUsual = [1, CodePointColours.unspecified].contains(primaries)
        self =
            isUsual && curve == CPIXELS_CURVE_SRGB
            ? .sRGB : .converted(Space(primaries: chromaticities, curve: curve))
    }

    /// Returns the chromaticities of ITU-T H.273, table 2; nil for an unknown code.
    private static func chromaticities(_ code: Int) -> cpixels_primaries? {
        let daylight = (0.3127, 0.3290)
        let illuminantC = (0.310, 0.316)
        func primaries(
            _ red: (Double, Double), _ green: (Double, Double), _ blue: (Double, Double),
            white: (Double, Double)
        ) -> cpixels_primaries {
            cpixels_primaries(red: red, green: green, blue: blue, white: white)
        }
        return switch code {
        case 1, unspecified:
            primaries((0.640, 0.330), (0.300, 0.600), (0.150, 0.060), white: daylight)
        // BT.470 System M.
        case 4: primaries((0.67, 0.33), (0.21, 0.71), (0.14, 0.08), white: illuminantC)
        // BT.601, 625 lines.
        case 5: primaries((0.64, 0.33), (0.29, 0.60), (0.15, 0.06), white: daylight)
        // BT.601, 525 lines; SMPTE ST 240.
        case 6, 7: primaries((0.630, 0.340), (0.310, 0.595), (0.155, 0.070), white: daylight)
        // Film with illuminant C.
        case 8: primaries((0.681, 0.319), (0.243, 0.692), (0.145, 0.049), white: illuminantC)
        // BT.2020.
        case 9: primaries((0.708, 0.292), (0.170, 0.797), (0.131, 0.046), white: daylight)
        // P3: DCI, then Display P3.
        case 11: primaries((0.680, 0.320), (0.265, 0.690), (0.150, 0.060), white: (0.314, 0.351))
        case 12: primaries((0.680, 0.320), (0.265, 0.690), (0.150, 0.060), white: daylight)
        // EBU Tech. 3213-E.
        case 22: primaries((0.630, 0.340), (0.295, 0.605), (0.155, 0.077), white: daylight)
        default: nil
        }
    }
}

extension Raster {
    /// Converts the samples in place from another colour space to sRGB.
    ///
    /// - Precondition: red, green and blue of 8 or 16 bits, with or without alpha.
    /// - Throws: `outOfMemory`, `cancelled`, or `limitExceeded`.
    mutating func convertToSRGB(
        from space: CodePointColours.Space, _ interruption: Interruption
    ) throws(CodecError) {
        precondition(channels >= 3 && bitDepth >= 8)
        var primaries = space.primaries
        let depth = Int32(bitDepth)
        try change(interruption) {
            cpixels_convert_to_srgb($0, depth, &primaries, space.curve, $1)
        }
    }
}
