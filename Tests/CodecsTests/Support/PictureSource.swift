import Foundation
import PrefetchModel
import SeededRandom
import Synchronization

@testable import Codecs

/// A large picture in one of the encoded formats, in contents that its header does not tell apart.
struct PictureSource: CustomStringConvertible, Hashable {
    enum Content: CaseIterable {
        case photograph
        case graphics
        case noise
    }

    var format: EncodedImageFormat
    var megapixels: Int
    var hasAlpha = false
    var isGrey = false
    /// JPEG only: 4:4:4 in place of its encoder's choice.
    var hasWholeChroma = false

    static func all(megapixels: [Int]) -> [PictureSource] {
        megapixels.flatMap { megapixels in
            EncodedImageFormat.allCases.flatMap { format in
                [
                    PictureSource(format: format, megapixels: megapixels),
                    PictureSource(format: format, megapixels: megapixels, hasAlpha: true),
                    PictureSource(format: format, megapixels: megapixels, isGrey: true),
                ].filter {
                    $0.hasAlpha ? format != .jpeg : !$0.isGrey || format == .jpeg || format == .png
                }
            }
        }
    }

    var description: String {
        "\(format) of \(megapixels) MP" + (hasAlpha ? " with alpha" : "") + (isGrey ? ", grey" : "")
            + (hasWholeChroma ? ", 4:4:4" : "")
    }

    /// The files of the last source, since tests take one source after the other.
    private static let known = Mutex<(source: PictureSource, files: [Content: [UInt8]])?>(nil)

    /// The file, encoded at quality 90.
    func bytes(of content: Content) throws -> [UInt8] {
        let known = Self.known.withLock { $0?.source == self ? $0?.files[content] : nil }
        if let known { return known }
        var recipe = Recipe(quality: 90)
        recipe.effort = .fast
        let interruption = Interruption(CodecLimits(maximumTime: .seconds(600)), nil)
        let raster = try raster(of: content, interruption)
        let made: [UInt8]
        if hasWholeChroma {
            made = try JPEGEncoding.encoded(
                upright: raster, halvesChroma: false, metadata: .none, by: recipe, interruption
            ).withUnsafeBytes { [UInt8]($0) }
        } else {
            let image = try format.image(
                of: raster, metadata: .none, by: recipe, interruption)
            guard case .encoded(let encoded) = image.output else {
                throw CodecError.encodingFailed("no output")
            }
            made = encoded.withUnsafeBytes { [UInt8]($0) }
        }
        Self.known.withLock { known in
            if known?.source != self { known = (self, [:]) }
            known?.files[content] = made
        }
        return made
    }

    /// Four to three. The rows repeat beyond the distance at which encoders find matches.
    private func raster(
        of content: Content, _ interruption: Interruption
    ) throws(CodecError) -> Raster {
        let width = Int((Double(megapixels) * 1e6 * 4 / 3).squareRoot())
        let height = width * 3 / 4
        let channels = (isGrey ? 1 : 3) + (hasAlpha ? 1 : 0)
        let raster = try Raster(
            width: width, height: height, channels: channels, interruption)
        let made = min(height, (1 << 20) / width + 1)
        var random = SplitMix(seed: 62)
        for y in 0..<made {
            let row = raster.firstSample + y * raster.stride
            for x in 0..<width {
                let bits = random.next()
                for channel in 0..<channels {
                    let noise = UInt8(truncatingIfNeeded: bits >> (8 * UInt64(channel)))
                    row[x * channels + channel] =
                        switch content {
                        case .photograph: UInt8(abs((x + y / 2) % 256 - 128)) + 32 + noise >> 4
                        // Some pixels differ, so that fewer of them repeat.
                        case .graphics:
                            bits >> 60 == 0 ? noise : Self.block(x / 23, y / 17, channel)
                        case .noise: noise
                        }
                }
            }
        }
        for y in made..<height {
            memcpy(
                raster.firstSample + y * raster.stride,
                raster.firstSample + (y % made) * raster.stride, raster.bytesPerRow)
        }
        return raster
    }

    /// One of many strong colours.
    private static func block(_ x: Int, _ y: Int, _ channel: Int) -> UInt8 {
        let place = x * 7919 + y * 104_729 + channel * 1299
        return UInt8(truncatingIfNeeded: (place &* 2_654_435_761) >> 13)
    }
}
