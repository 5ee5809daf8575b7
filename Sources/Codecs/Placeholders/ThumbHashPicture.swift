internal import Glibc
internal import PrefetchModel

/// A small picture of a ThumbHash, as <https://evanw.github.io/thumbhash/> decodes it.
package struct ThumbHashPicture: Sendable {
    /// Pixels of the longer side. The picture has at most seven waves on it.
    private static let side = 24

    package let widthInPixels: Int
    package let heightInPixels: Int
    package let hasAlpha: Bool
    /// Red, green, blue and straight alpha, rows from the top without gaps.
    package private(set) var pixels: [UInt8] = []

    /// - Parameter hash: As ``Placeholder/thumbHash``; missing bytes count as zero.
    package init(_ hash: [UInt8]) {
        func byte(_ index: Int) -> Int { index < hash.count ? Int(hash[index]) : 0 }
        let head = byte(0) | byte(1) << 8 | byte(2) << 16
        let tail = byte(3) | byte(4) << 8
        let hasAlpha = head >> 23 != 0
        let isLandscape = tail >> 15 != 0
        let (long, short) = (hasAlpha ? 5 : 7, tail & 7)
        let ratio =
            isLandscape ? Double(long) / Double(max(1, short)) : Double(short) / Double(long)
        func size(_ part: Double) -> Int {
            min(
                max(1, Int((Double(ThumbHashPicture.side) * part).rounded())), ThumbHashPicture.side
            )
        }
        let (width, height) = (size(min(1, ratio)), size(min(1, 1 / max(ratio, 0.01))))
        self.hasAlpha = hasAlpha
        widthInPixels = width
        heightInPixels = height
        var position = hasAlpha ? 12 : 10
        func waves(_ columns: Int, _ rows: Int, _ mean: Double, _ scale: Double) -> Waves {
            var factors: [Waves.Factor] = []
            for y in 0..<rows {
                for x in (y == 0 ? 1 : 0)..<columns where x * rows < columns * (rows - y) {
                    let nibble = byte(position / 2) >> (position % 2 * 4) & 15
                    position += 1
                    factors.append((x, y, (Double(nibble) / 7.5 - 1) * scale))
                }
            }
            return Waves(mean: mean, factors: factors)
        }
        let luminance = waves(
            max(3, isLandscape ? long : short), max(3, isLandscape ? short : long),
            Double(head & 63) / 63, Double(head >> 18 & 31) / 31)
        let yellowBlue = waves(
            3, 3, Double(head >> 6 & 63) / 31.5 - 1, Double(tail >> 3 & 63) / 63 * 1.25)
        let redGreen = waves(
            3, 3, Double(head >> 12 & 63) / 31.5 - 1, Double(tail >> 9 & 63) / 63 * 1.25)
        let alpha =
            hasAlpha
            ? waves(5, 5, Double(byte(5) & 15) / 15, Double(byte(5) >> 4) / 15)
            : Waves(mean: 1, factors: [])
        pixels.reserveCapacity(width * height * 4)
        for y in 0..<height {
            for x in 0..<width {
                let (u, v) = (
                    Double.pi * (Double(x) + 0.5) / Double(width),
                    Double.pi * (Double(y) + 0.5) / Double(height)
                )
                let (light, p, q) = (
                    luminance.value(u, v), yellowBlue.value(u, v), redGreen.value(u, v)
                )
                let blue = light - 2.0 / 3.0 * p
                let red = (3 * light - blue + q) / 2
                for value in [red, red - q, blue, alpha.value(u, v)] {
                    pixels.append(UInt8(min(max(0, value), 1) * 255))
                }
            }
        }
    }

    /// A channel as a sum of cosines.
    private struct Waves {
        typealias Factor = (x: Int, y: Int, size: Double)

        let mean: Double
        let factors: [Factor]

        func value(_ u: Double, _ v: Double) -> Double {
            factors.reduce(mean) { sum, factor in
                let column = cos(u * Double(factor.x)) * factor.size
                return sum + column * cos(v * Double(factor.y)) * 2
            }
        }
    }

    package func png() throws(CodecError) -> [UInt8] {
        let interruption = Interruption(CodecLimits(), nil)
        let channels = hasAlpha ? 4 : 3
        let raster = try Raster(
            width: widthInPixels, height: heightInPixels, channels: channels, interruption)
        for (index, sample) in pixels.enumerated() where index % 4 < channels {
            let (y, x) = (index / 4).quotientAndRemainder(dividingBy: widthInPixels)
            raster.firstSample[y * raster.stride + x * channels + index % 4] = sample
        }
        let recipe = Recipe(encoding: .png, keepsLarger: true)
        return try PNGEncoding.encoded(raster, metadata: .none, by: recipe, interruption)
            .withUnsafeBytes { [UInt8]($0) }
    }
}
