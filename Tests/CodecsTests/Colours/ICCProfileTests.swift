import Foundation
import PrefetchModel
import Testing

@testable import Codecs

/// Handmade profiles (ICC.1:2022).
enum Profiles {
    /// The curve of the channels.
    enum Curve {
        case parametric
        /// A table with this many entries.
        case sampled(Int)
        case power(Double)
        /// A function type of section 10.18, and its parameters.
        case parameters(Int, [Double])
    }

    static let sRGBColorants: [[Double]] = [
        [0.43607, 0.22249, 0.01392], [0.38515, 0.71687, 0.09708], [0.14307, 0.06061, 0.71410],
    ]
    /// Display P3.
    static let wideColorants: [[Double]] = [
        [0.51512, 0.24120, -0.00105], [0.29198, 0.69225, 0.04189], [0.15710, 0.06657, 0.78407],
    ]

    static func rgb(
        _ colorants: [[Double]] = sRGBColorants, _ curve: Curve = .parametric,
        extra: [(String, [UInt8])] = []
    ) -> [UInt8] {
        var tags = zip(["rXYZ", "gXYZ", "bXYZ"], colorants).map { ($0, xyz($1)) }
        tags += ["rTRC", "gTRC", "bTRC"].map { ($0, encoded(curve)) }
        return profile(space: "RGB ", tags: tags + extra)
    }

    static func grey(_ curve: Curve) -> [UInt8] {
        profile(space: "GRAY", tags: [("kTRC", encoded(curve))])
    }

    static func profile(space: String, tags: [(String, [UInt8])]) -> [UInt8] {
        var table = number(tags.count)
        var data: [UInt8] = []
        for (name, bytes) in tags {
            let start = 132 + 12 * tags.count + data.count
            table += Array(name.utf8) + number(start) + number(bytes.count)
            data += bytes + [UInt8](repeating: 0, count: (4 - bytes.count % 4) % 4)
        }
        var header = [UInt8](repeating: 0, count: 128)
        header.replaceSubrange(0..<4, with: number(128 + table.count + data.count))
        header.replaceSubrange(12..<24, with: Array("mntr\(space)XYZ ".utf8))
        header.replaceSubrange(36..<40, with: Array("acsp".utf8))
        return header + table + data
    }

    private static func number(_ value: Int) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: value >> (24 - 8 * $0)) }
    }

    private static func fixed(_ value: Double) -> [UInt8] { number(Int((value * 65536).rounded())) }

    private static func xyz(_ values: [Double]) -> [UInt8] {
        Array("XYZ ".utf8) + number(0) + values.flatMap(fixed)
    }

    private static func encoded(_ curve: Curve) -> [UInt8] {
        switch curve {
        case .parametric:
            let values = [2.4, 1 / 1.055, 0.055 / 1.055, 1 / 12.92, 0.04045]
            return encoded(.parameters(3, values))
        case .parameters(let type, let values):
            return Array("para".utf8) + number(0) + [0, UInt8(type), 0, 0] + values.flatMap(fixed)
        case .power(let exponent):
            let value = Int((exponent * 256).rounded())
            return Array("curv".utf8) + number(0) + number(1)
                + [UInt8(value >> 8), UInt8(value & 255)]
        case .sampled(let count):
            let values = (0..<count).map { index -> Int in
                let input = Double(index) / Double(count - 1)
                let light = input <= 0.04045 ? input / 12.92 : pow((input + 0.055) / 1.055, 2.4)
                return Int((light * 65535).rounded())
            }
            return Array("curv".utf8) + number(0) + number(count)
                + values.flatMap { [UInt8($0 >> 8), UInt8($0 & 255)] }
        }
    }
}

@Suite(.serialized, .timeLimit(.minutes(15))) struct ICCProfileTests {
    @Test func recognisesSRGBByItsCurvesAndMatrix() {
        #expect(ICCProfile.isSRGB(Profiles.rgb()))
        #expect(ICCProfile.isSRGB(Profiles.rgb(Profiles.sRGBColorants, .sampled(1024))))
        #expect(ICCProfile.isSRGB(Profiles.rgb(Profiles.sRGBColorants, .sampled(256))))
        #expect(ICCProfile.isSRGB(Profiles.grey(.parametric)))
    }

    @Test func rejectsOtherProfiles() {
        #expect(!ICCProfile.isSRGB(Profiles.rgb(Profiles.wideColorants)))
        #expect(!ICCProfile.isSRGB(Profiles.rgb(Profiles.sRGBColorants, .power(2.2))))
        #expect(!ICCProfile.isSRGB(Profiles.rgb(Profiles.sRGBColorants, .power(1))))
        #expect(!ICCProfile.isSRGB(Profiles.grey(.power(1.8))))
        // Red and green swapped.
        let exchanged = [1, 0, 2].map { Profiles.sRGBColorants[$0] }
        #expect(!ICCProfile.isSRGB(Profiles.rgb(exchanged)))
        let table: [(String, [UInt8])] = [("A2B0", [UInt8](repeating: 0, count: 32))]
        #expect(!ICCProfile.isSRGB(Profiles.rgb(extra: table)))
    }

    /// Linear light has too few steps in 8 bits.
    @Test func bytesAreCoarseForLinearLight() {
        #expect(ICCProfile.isCoarseInBytes(Profiles.rgb(Profiles.wideColorants, .power(1))))
        #expect(ICCProfile.isCoarseInBytes(Profiles.grey(.power(1))))
        for exponent in [1.8, 2.2] {
            #expect(!ICCProfile.isCoarseInBytes(Profiles.grey(.power(exponent))))
        }
        #expect(!ICCProfile.isCoarseInBytes(Profiles.rgb(Profiles.wideColorants)))
        #expect(!ICCProfile.isCoarseInBytes(Profiles.rgb(extra: [])))
        // Every type of ICC.1:2022, section 10.18, as linear light and as a power.
        let more: [[Double]] = [[], [1, 0], [1, 0, 0], [1, 0, 1, 0], [1, 0, 1, 0, 0, 0]]
        for (type, values) in more.enumerated() {
            for (exponent, isCoarse) in [(1.0, true), (2.2, false)] {
                let profile = Profiles.grey(.parameters(type, [exponent] + values))
                #expect(ICCProfile.isCoarseInBytes(profile) == isCoarse, "type \(type)")
            }
        }
    }

    @Test func colorantsOfAnotherTypeAreNotReadable() {
        var profile = Profiles.rgb(Profiles.wideColorants)
        #expect(ICCProfile.hasReadableColorants(profile))
        #expect(ICCProfile.hasReadableColorants(Profiles.grey(.power(1.8))))
        let place = profile.indices.dropFirst(132 + 72).first {
            profile[$0...].starts(with: "XYZ ".utf8)
        }
        profile[place ?? 0] = 0x17
        #expect(!ICCProfile.hasReadableColorants(profile))
    }

    @Test func survivesDamage() {
        let whole = Profiles.rgb(Profiles.sRGBColorants, .sampled(26))
        for position in whole.indices {
            for value in [UInt8(0), 0x7F, 0xFF] {
                var damaged = whole
                damaged[position] = value
                _ = ICCProfile.isSRGB(damaged)
                _ = ICCProfile.isCoarseInBytes(damaged)
                _ = ICCProfile.hasReadableColorants(damaged)
            }
        }
        for count in whole.indices {
            var cut = Array(whole.prefix(count))
            if count >= 4 {
                cut.replaceSubrange(
                    0..<4, with: (0..<4).map { UInt8(truncatingIfNeeded: count >> (24 - 8 * $0)) })
            }
            #expect(!ICCProfile.isSRGB(cut))
        }
    }

    @Test(
        .enabled(if: TestData.isAvailable),
        arguments: [
            // 596 to 8,940 bytes, from six makers.
            ("photos/sklearn_china.jpg", true), ("jpeg/reftest/jpg-srgb-icc.jpg", true),
            ("jpeg/zune/fox410.jpg", true), ("jpeg/fuzz-afl-rs/4x4.jpg", true),
            ("photos/astronaut.png", true), ("png/deep-colour/monkey16.png", true),
            ("photos/u76c0g_bliznaca_srgb8.png", true),
            ("photos/rocket.jpg", false), ("jpeg/odd-but-real/cmm-exception-corbis-rgb.jpg", false),
            ("png/wide-gamut/P3-sRGB-blue.png", false),
            ("png/deep-colour/DJI-FC6310-16bit_709_v4_krita.png", false),
            ("png/deep-colour/q3a0b3_d17ws_709_g1.png", false),
            ("png/deep-colour/prophoto.png", false),
        ])
    func knowsProfilesInUse(path: String, isSRGB: Bool) throws {
        let source = try TestData.bytes(path)
        let profile = try source.withUnsafeBytes { bytes in
            try path.hasSuffix(".png")
                ? PNGFile(bytes).profile
                : JPEGFile(headerOf: bytes).profile
        }
        #expect(ICCProfile.isSRGB(try #require(profile)) == isSRGB)
    }
}
