internal import Glibc
internal import Synchronization

/// Checks of an ICC profile (ICC.1:2022, section 7.2): its size, its colour space, and whether it
/// is equivalent to sRGB.
enum ICCProfile {
    static let headerBytes = 128

    /// Whether the profile has its stated length and the signature `acsp`.
    static func isWhole(_ profile: [UInt8]) -> Bool {
        guard profile.count >= headerBytes else { return false }
        return profile.withUnsafeBytes {
            $0.bigEndian32(at: 0) == profile.count && $0.holds("acsp", at: 36)
        }
    }

    /// The kinds of pixels that pictures have.
    enum ProfileSpace {
        case grey, rgb, cmyk
    }

    /// The pixels that a complete profile describes; nil for other kinds.
    static func space(of profile: [UInt8]) -> ProfileSpace? {
        guard isWhole(profile) else { return nil }
        return profile.withUnsafeBytes { bytes in
            bytes.holds("RGB ", at: 16)
                ? .rgb
                : bytes.holds("GRAY", at: 16) ? .grey : bytes.holds("CMYK", at: 16) ? .cmyk : nil
        }
    }

    /// Whether the profile is complete and describes pixels with this many channels: 1 grey, 3 RGB,
    /// 4 CMYK.
    static func fits(_ profile: [UInt8], channels: Int) -> Bool {
        space(of: profile) == (channels == 1 ? .grey : channels == 3 ? .rgb : .cmyk)
    }

    /// Whether a profile applies to pixels with this many channels without alpha. Grey ones may
    /// have a profile of colours. Any other profile of another kind is ignored, as in browsers.
    static func applies(_ profile: [UInt8], toChannels channels: Int) -> Bool {
        fits(profile, channels: channels) || channels == 1 && fits(profile, channels: 3)
    }
}

// MARK: - sRGB

extension ICCProfile {
    /// The columns of the matrix from linear sRGB to XYZ, adapted to D50 by Bradford's method, as
    /// common profiles have them (IEC 61966-2-1; ICC.1:2022, annex E).
    private static let colorants: [(tag: StaticString, value: [Double])] = [
        ("rXYZ", [0.4360, 0.2225, 0.0139]), ("gXYZ", [0.3851, 0.7169, 0.0971]),
        ("bXYZ", [0.1431, 0.0606, 0.7141]),
    ]
    /// Published matrices of sRGB differ by up to 0.0005 in rounding and white point. Adobe
    /// RGB and Display P3 differ by 0.05 and more.
    private static let colorantTolerance = 0.002
    /// The tolerance in encoded light from 0 to 1: less than one 8-bit step. A pure power of 2.2 is
    /// seven steps away in the shadows.
    private static let curveTolerance = 1 / 255.0

    /// Whether pixels look the same with this profile as without any, which means sRGB.
    ///
    /// The test compares values, not names: sRGB is published under dozens of names and digests,
    /// and some profiles named sRGB differ from it. For RGB, the three colorants must be within
    /// ``colorantTolerance`` and the three curves within ``curveTolerance``; for grey, the one
    /// curve.
    ///
    /// A profile with look-up tables (`A2B0` and similar), which take precedence over matrix and
    /// curves, counts as another space.
    static func isSRGB(_ profile: [UInt8]) -> Bool {
        guard isWhole(profile) else { return false }
        // Most profiles of a run are the same few, and the curves' 768 powers take longer than the
        // header of a picture.
        let known = verdicts.withLock { $0.value(of: profile) { _ in true } }
        if let known { return known }
        let isSRGB = hasCurvesAndColorantsOfSRGB(profile)
        if profile.count <= mostRememberedBytes {
            verdicts.withLock { $0.add(isSRGB, of: profile) }
        }
        return isSRGB
    }

    private static let verdicts = Mutex(RecentProfiles<Bool>())
    private static let mostRememberedBytes = 16 << 10

    private static func hasCurvesAndColorantsOfSRGB(_ profile: [UInt8]) -> Bool {
        return profile.withUnsafeBytes { bytes in
            guard bytes.holds("XYZ ", at: 20), let tags = tags(of: bytes) else { return false }
            let tables: [StaticString] = [
                "A2B0", "A2B1", "A2B2", "D2B0", "D2B1", "D2B2", "D2B3",
            ]
            guard tables.allSatisfy({ tags[signature($0)] == nil }) else { return false }
            let curves: [StaticString]
            if bytes.holds("GRAY", at: 16) {
                curves = ["kTRC"]
            } else if bytes.holds("RGB ", at: 16) {
                curves = ["rTRC", "gTRC", "bTRC"]
                for (tag, value) in colorants {
                    guard let range = tags[signature(tag)], let found = xyz(in: bytes[range]),
                        zip(found, value).allSatisfy({ abs($0 - $1) <= colorantTolerance })
                    else { return false }
                }
            } else {
                return false
            }
            return curves.allSatisfy { tag in
                tags[signature(tag)].map { isCurveOfSRGB(.init(rebasing: bytes[$0])) } ?? false
            }
        }
    }

    /// Whether 8 bits are too few for the profile: the first step above black is over four steps of
    /// sRGB, as in linear light, where the first step is thirteen.
    static func isCoarseInBytes(_ profile: [UInt8]) -> Bool {
        profile.withUnsafeBytes { bytes in
            guard let tags = tags(of: bytes) else { return false }
            let curves: [StaticString] = ["kTRC", "rTRC", "gTRC", "bTRC"]
            return curves.contains { tag in
                guard let range = tags[signature(tag)],
                    let light = curve(.init(rebasing: bytes[range]))
                else { return false }
                return encodedSRGB(light(1 / 255)) > 4 / 255
            }
        }
    }

    /// Whether colorants, if there are any, have the type of section 10.31, without which browsers
    /// show no AVIF.
    static func hasReadableColorants(_ profile: [UInt8]) -> Bool {
        profile.withUnsafeBytes { bytes in
            guard let tags = tags(of: bytes) else { return true }
            return colorants.allSatisfy { tag, _ in
                tags[signature(tag)].map { xyz(in: bytes[$0]) != nil } ?? true
            }
        }
    }

    private static func signature(_ text: StaticString) -> Int {
        (0..<4).reduce(0) { $0 << 8 | Int(text.utf8Start[$1]) }
    }

    /// Returns the tag table (section 7.3); nil if it or a tag extends beyond the end.
    static func tags(of bytes: UnsafeRawBufferPointer) -> [Int: Range<Int>]? {
        guard bytes.count >= headerBytes + 4 else { return nil }
        let count = bytes.bigEndian32(at: headerBytes)
        guard count <= (bytes.count - headerBytes - 4) / 12 else { return nil }
        var tags: [Int: Range<Int>] = [:]
        for index in 0..<count {
            let entry = headerBytes + 4 + 12 * index
            let start = bytes.bigEndian32(at: entry + 4)
            let length = bytes.bigEndian32(at: entry + 8)
            guard start <= bytes.count, length <= bytes.count - start else { return nil }
            tags[bytes.bigEndian32(at: entry)] = start..<start + length
        }
        return tags
    }

    /// Reads an s15Fixed16Number (section 4.6).
    private static func fixed(_ bytes: UnsafeRawBufferPointer, at offset: Int) -> Double {
        Double(Int32(truncatingIfNeeded: bytes.bigEndian32(at: offset))) / 65536
    }

    private static func xyz(in slice: Slice<UnsafeRawBufferPointer>) -> [Double]? {
        let bytes = UnsafeRawBufferPointer(rebasing: slice)
        guard bytes.count >= 20, bytes.holds("XYZ ", at: 0) else { return nil }
        return [8, 12, 16].map { fixed(bytes, at: $0) }
    }

    private static func isCurveOfSRGB(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard let curve = curve(bytes) else { return false }
        // Compared in encoded values, since 8-bit steps and perception follow those.
        return (0...255).allSatisfy { step in
            let encoded = Double(step) / 255
            return abs(encodedSRGB(curve(encoded)) - encoded) <= curveTolerance
        }
    }

    private static func curve(_ bytes: UnsafeRawBufferPointer) -> ((Double) -> Double)? {
        guard bytes.count >= 12 else { return nil }
        if bytes.holds("curv", at: 0) { return sampledCurve(bytes) }
        return bytes.holds("para", at: 0) ? parametricCurve(bytes) : nil
    }

    /// The sRGB encoding of linear light (IEC 61966-2-1).
    private static func encodedSRGB(_ linear: Double) -> Double {
        let linear = min(max(linear, 0), 1)
        return linear <= 0.0031308 ? 12.92 * linear : 1.055 * pow(linear, 1 / 2.4) - 0.055
    }

    /// A curve of section 10.6: identity, one exponent, or equidistant values.
    private static func sampledCurve(_ bytes: UnsafeRawBufferPointer) -> ((Double) -> Double)? {
        let count = bytes.bigEndian32(at: 8)
        guard count <= (bytes.count - 12) / 2 else { return nil }
        switch count {
        case 0: return { $0 }
        case 1:
            let exponent = Double(bytes.bigEndian16(at: 12)) / 256
            return { pow($0, exponent) }
        default:
            return { input in
                let position = input * Double(count - 1)
                let index = min(Int(position), count - 2)
                let low = Double(bytes.bigEndian16(at: 12 + 2 * index))
                let high = Double(bytes.bigEndian16(at: 14 + 2 * index))
                return (low + (high - low) * (position - Double(index))) / 65535
            }
        }
    }

    /// A curve of section 10.18.
    private static func parametricCurve(_ bytes: UnsafeRawBufferPointer) -> ((Double) -> Double)? {
        let counts = [1, 3, 4, 5, 7]
        let type = bytes.bigEndian16(at: 8)
        guard counts.indices.contains(type), bytes.count >= 12 + 4 * counts[type] else {
            return nil
        }
        let given = (0..<counts[type]).map { fixed(bytes, at: 12 + 4 * $0) }
        // As parameters of type 4, the most general one.
        var value = [given[0], 1, 0, 0, 0, 0, 0]
        value.replaceSubrange(given.indices, with: given)
        if type == 1 || type == 2 {
            value[3] = 0
            value[4] = -value[2] / value[1]
            if type == 2 { (value[5], value[6]) = (given[3], given[3]) }
        }
        return { input in
            input >= value[4]
                ? pow(max(value[1] * input + value[2], 0), value[0]) + value[5]
                : value[3] * input + value[6]
        }
    }
}
