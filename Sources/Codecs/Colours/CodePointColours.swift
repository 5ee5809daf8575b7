extension SourceColours {
    /// The colours that a container's code points (CICP, ITU-T H.273) describe; 2 is unspecified.
    ///
    /// Video transfer curves (1, 6, 11, 12, 14, 15) are treated as sRGB's, as browsers do for AVIF.
    /// They are meant for screens that show them darker than the light that they encode.
    ///
    /// `peak` is the brightest light of PQ and HLG in cd/m².
    init(
        primaries: Int, transfer: Int, peak: @autoclosure () -> Double = RGBSpace.usualPeak,
        ofA format: String
    ) {
        let name = "CICP \(primaries)/\(transfer)"
        let curve: RGBSpace.Curve
        switch transfer {
        case 1, 2, 6, 11...15: curve = .sRGB
        case 4: curve = .power(2.2)
        case 5: curve = .power(2.8)
        case 7: curve = .smpte240
        case 8: curve = .power(1)
        case 16: curve = .pq(peak: peak())
        case 18: curve = .hlg(peak: peak())
        default:
            self = .unconvertible("\(format) of colours that are not known (\(name))")
            return
        }
        guard let chromaticities = SourceColours.chromaticities(primaries) else {
            self = .unconvertible("\(format) of colours that are not known (\(name))")
            return
        }
        if [1, 2].contains(primaries), curve == .sRGB {
            self = primaries == 2 && transfer == 2 ? .undeclared : .sRGB(profile: nil)
        } else {
            self = .space(RGBSpace(primaries: chromaticities, curve: curve))
        }
    }

    /// Returns the chromaticities of ITU-T H.273, table 2; nil for an unknown code.
    private static func chromaticities(_ code: Int) -> RGBSpace.Primaries? {
        typealias Place = RGBSpace.Chromaticity
        let daylight: Place = [0.3127, 0.3290]
        let illuminantC: Place = [0.310, 0.316]
        func primaries(
            _ red: Place, _ green: Place, _ blue: Place, white: Place
        ) -> RGBSpace.Primaries { .init(red: red, green: green, blue: blue, white: white) }
        return switch code {
        case 1, 2: .sRGB
        // BT.470 System M.
        case 4: primaries([0.67, 0.33], [0.21, 0.71], [0.14, 0.08], white: illuminantC)
        // BT.601, 625 lines.
        case 5: primaries([0.64, 0.33], [0.29, 0.60], [0.15, 0.06], white: daylight)
        // BT.601, 525 lines; SMPTE ST 240.
        case 6, 7: primaries([0.630, 0.340], [0.310, 0.595], [0.155, 0.070], white: daylight)
        // Film with illuminant C.
        case 8: primaries([0.681, 0.319], [0.243, 0.692], [0.145, 0.049], white: illuminantC)
        // BT.2020.
        case 9: primaries([0.708, 0.292], [0.170, 0.797], [0.131, 0.046], white: daylight)
        // P3: DCI, then Display P3.
        case 11:
            primaries([0.680, 0.320], [0.265, 0.690], [0.150, 0.060], white: [0.314, 0.351])
        case 12: primaries([0.680, 0.320], [0.265, 0.690], [0.150, 0.060], white: daylight)
        // EBU Tech. 3213-E.
        case 22: primaries([0.630, 0.340], [0.295, 0.605], [0.155, 0.077], white: daylight)
        default: nil
        }
    }
}
