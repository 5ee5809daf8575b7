import CInterruption
import CResample
import Foundation
import SeededRandom
import Testing

/// Compares the C boundary's results with the filter's definition in double precision.
@Suite(.timeLimit(.minutes(15))) struct ResamplingTests {
    struct Sizes: CustomTestStringConvertible, Sendable {
        let width, height, targetWidth, targetHeight: Int

        init(_ width: Int, _ height: Int, _ targetWidth: Int, _ targetHeight: Int) {
            (self.width, self.height) = (width, height)
            (self.targetWidth, self.targetHeight) = (targetWidth, targetHeight)
        }

        var testDescription: String { "\(width) × \(height) to \(targetWidth) × \(targetHeight)" }
        var target: ResampledPicture.Size { (targetWidth, targetHeight) }
    }

    /// Channels, bit depth, and whether to resize in linear light.
    struct Kind: CustomTestStringConvertible, Sendable {
        let channels, bitDepth: Int
        let isLinear: Bool

        var testDescription: String {
            "\(channels) × \(bitDepth) bits\(isLinear ? ", linear" : "")"
        }
    }

    static let kinds: [Kind] = [8, 16].flatMap { depth in
        (1...4).flatMap { channels in
            [false, true].map { Kind(channels: channels, bitDepth: depth, isLinear: $0) }
        }
    }

    static let sizes = [
        Sizes(100, 60, 95, 57), Sizes(99, 61, 50, 30), Sizes(101, 67, 33, 21),
        Sizes(150, 70, 15, 7), Sizes(203, 103, 4, 2), Sizes(97, 49, 1, 1), Sizes(40, 30, 67, 44),
        Sizes(33, 70, 45, 13), Sizes(1, 50, 1, 7), Sizes(50, 1, 9, 1),
        Sizes(50, 1, 9, 3), Sizes(1, 1, 5, 4), Sizes(2, 3, 3, 2), Sizes(60, 40, 60, 13),
    ]

    /// The largest difference. Colour errors are weighted by alpha, from 1/255 on.
    private func difference(_ made: ResampledPicture, _ reference: [Double]) -> Double {
        var largest = 0.0
        for index in made.samples.indices {
            let alphaIndex = index - index % made.channels + made.channels - 1
            if made.hasAlpha, index != alphaIndex, reference[alphaIndex] < Double(made.most) / 255 {
                continue
            }
            largest = max(largest, abs(Double(made.samples[index]) - reference[index]))
        }
        return largest
    }

    private func peakSignalToNoise(_ made: ResampledPicture, _ reference: [Double]) -> Double {
        var (sum, count) = (0.0, 0.0)
        for index in made.samples.indices {
            // Colours are weighted by alpha.
            let alphaIndex = index - index % made.channels + made.channels - 1
            let isColour = made.hasAlpha && index != alphaIndex
            let weight = isColour ? reference[alphaIndex] / Double(made.most) : 1
            let difference = (Double(made.samples[index]) - reference[index]) / Double(made.most)
            sum += difference * difference * weight * weight
            count += 1
        }
        return 10 * log10(count / sum)
    }

    @Test(arguments: sizes, kinds)
    func lanczosMatchesDefinitionWithinOneStep(sizes: Sizes, kind: Kind) throws {
        let picture = ResampledPicture(
            noise: 1, sizes.width, sizes.height, channels: kind.channels, bitDepth: kind.bitDepth)
        let made = try picture.resized(
            to: sizes.target, filter: CRESAMPLE_LANCZOS3, isLinear: kind.isLinear)
        let reference = picture.reference(to: sizes.target, isLinear: kind.isLinear)
        #expect(difference(made, reference) <= 1)
    }

    @Test(
        arguments: [
            Sizes(210, 150, 30, 20), Sizes(200, 121, 20, 12), Sizes(250, 167, 12, 8),
            Sizes(303, 203, 6, 4), Sizes(600, 7, 10, 7), Sizes(9, 700, 6, 10),
        ], kinds.filter { $0.channels > 2 })
    func averagingFirstIsCloseToLanczos(sizes: Sizes, kind: Kind) throws {
        let picture = ResampledPicture(
            photograph: 2, sizes.width, sizes.height, channels: kind.channels,
            bitDepth: kind.bitDepth)
        let made = try picture.resized(to: sizes.target, isLinear: kind.isLinear)
        let reference = picture.reference(to: sizes.target, isLinear: kind.isLinear)
        #expect(peakSignalToNoise(made, reference) >= 45)
    }

    /// Sizes from one pixel to many vectors, rectangles, and all kinds.
    @Test(arguments: [UInt64](0..<12))
    func everyPathGivesTheSameBytes(seed: UInt64) throws {
        var numbers = SplitMix(seed: seed)
        func number(_ range: ClosedRange<Int>) -> Int { .random(in: range, using: &numbers) }
        for _ in 0..<20 {
            let picture = ResampledPicture(
                noise: seed, number(1...160), number(1...90), channels: number(1...4),
                bitDepth: 8 * number(1...2))
            let target = (width: number(1...60), height: number(1...40))
            let rectangle = ResamplingTests.rectangle(in: picture, &numbers)
            let filter = [CRESAMPLE_AUTOMATIC, CRESAMPLE_LANCZOS3][number(0...1)]
            let isLinear = number(0...2) == 0
            func made(_ path: cresample_path) throws -> ResampledPicture {
                try picture.resized(
                    to: target, from: rectangle, filter: filter, isLinear: isLinear, path: path)
            }
            let portable = try made(CRESAMPLE_PORTABLE)
            #expect(try made(CRESAMPLE_BASELINE) == portable)
            #expect(try made(CRESAMPLE_FASTEST) == portable)
        }
    }

    private static func rectangle(
        in picture: ResampledPicture, _ numbers: inout SplitMix
    ) -> cresample_rectangle {
        var part: Double { .random(in: 0.05...0.95, using: &numbers) }
        let (width, height) = (Double(picture.width) * part, Double(picture.height) * part)
        return cresample_rectangle(
            x: (Double(picture.width) - width) * part, y: (Double(picture.height) - height) * part,
            width: width, height: height)
    }

    @Test(arguments: kinds)
    func keepsFlatColour(kind: Kind) throws {
        var numbers = SplitMix(seed: 3)
        for round in 0..<24 {
            let most = 1 << kind.bitDepth - 1
            // From dark and nearly transparent to light and opaque.
            let limit = [1, 3, 20, most][round % 4]
            let colour = (0..<kind.channels).map { _ in Int.random(in: 1...limit, using: &numbers) }
            let (width, height) = (
                Int.random(in: 1...150, using: &numbers), Int.random(in: 1...150, using: &numbers)
            )
            let picture = ResampledPicture(
                width, height, channels: kind.channels, bitDepth: kind.bitDepth
            ) { colour[$2] }
            let target = (
                width: Int.random(in: 1...30, using: &numbers),
                height: Int.random(in: 1...30, using: &numbers)
            )
            let made = try picture.resized(
                to: target, from: ResamplingTests.rectangle(in: picture, &numbers),
                filter: round % 3 == 0 ? CRESAMPLE_LANCZOS3 : CRESAMPLE_AUTOMATIC,
                isLinear: kind.isLinear)
            let expected = ResampledPicture(
                target.width, target.height, channels: kind.channels, bitDepth: kind.bitDepth
            ) { colour[$2] }
            #expect(made == expected, "\(colour), \(width) × \(height) to \(target)")
        }
    }

    @Test(arguments: kinds)
    func sameSizeIsACopy(kind: Kind) throws {
        let picture = ResampledPicture(
            noise: 4, 37, 23, channels: kind.channels, bitDepth: kind.bitDepth)
        #expect(try picture.resized(to: (37, 23), isLinear: kind.isLinear) == picture)
        let part = try picture.resized(
            to: (20, 11), from: cresample_rectangle(x: 5, y: 7, width: 20, height: 11),
            isLinear: kind.isLinear)
        for y in 0..<11 {
            for x in 0..<20 { #expect(part[x, y] == picture[x + 5, y + 7]) }
        }
    }

    /// Each column is resized independently.
    @Test(arguments: [1, 3]) func keptAxisIsNotBlurred(channels: Int) throws {
        let picture = ResampledPicture(noise: 5, 40, 90, channels: channels)
        let made = try picture.resized(to: (40, 9))
        for x in [0, 17, 39] {
            let column = ResampledPicture(1, 90, channels: channels) { _, y, channel in
                picture[x, y][channel]
            }
            let alone = try column.resized(to: (1, 9))
            for y in 0..<9 { #expect(made[x, y] == alone[0, y]) }
        }
    }

    @Test(arguments: kinds.filter { $0.channels % 2 == 0 })
    func ignoresColoursOfTransparentPixels(kind: Kind) throws {
        let most = 1 << kind.bitDepth - 1
        // Bright where transparent, and one darker colour where opaque.
        let picture = ResampledPicture(
            120, 90, channels: kind.channels, bitDepth: kind.bitDepth
        ) { x, y, channel in
            let isSeen = (x / 20 + y / 15) % 2 == 0
            if channel == kind.channels - 1 { return isSeen ? most : 0 }
            return isSeen ? most / 5 : most
        }
        let targets: [ResampledPicture.Size] = [(80, 60), (30, 30), (12, 9), (7, 150)]
        for target in targets {
            let made = try picture.resized(to: target, isLinear: kind.isLinear)
            var alphas: Set<Int> = []
            for pixel in stride(from: 0, to: made.samples.count, by: kind.channels) {
                let alpha = made.samples[pixel + kind.channels - 1]
                alphas.insert(alpha)
                for colour in made.samples[pixel..<pixel + kind.channels - 1] {
                    #expect(colour == (alpha == 0 ? 0 : most / 5))
                }
            }
            #expect(alphas.count > 1)
        }
    }

    @Test(arguments: kinds.filter { $0.channels % 2 == 0 })
    func opaqueStaysOpaque(kind: Kind) throws {
        var picture = ResampledPicture(
            noise: 6, 130, 70, channels: kind.channels, bitDepth: kind.bitDepth)
        let alphas = stride(
            from: kind.channels - 1, to: picture.samples.count, by: kind.channels)
        for index in alphas { picture.samples[index] = picture.most }
        let targets: [ResampledPicture.Size] = [(100, 50), (13, 7), (150, 90)]
        for target in targets {
            let made = try picture.resized(to: target, isLinear: kind.isLinear)
            let isOpaque = stride(
                from: kind.channels - 1, to: made.samples.count, by: kind.channels
            )
            .allSatisfy { made.samples[$0] == made.most }
            #expect(isOpaque)
        }
    }

    /// Opaque pixels with and without an alpha channel: integer and float code agree.
    @Test func integersAndFloatsAgree() throws {
        let plain = ResampledPicture(noise: 7, 211, 133, channels: 3)
        let withAlpha = ResampledPicture(211, 133, channels: 4) { x, y, channel in
            channel == 3 ? 255 : plain[x, y][channel]
        }
        let targets: [ResampledPicture.Size] = [(100, 60), (21, 13), (250, 140)]
        for target in targets {
            let left = try plain.resized(to: target)
            let right = try withAlpha.resized(to: target)
            for index in 0..<target.width * target.height {
                for channel in 0..<3 {
                    let difference =
                        left.samples[index * 3 + channel] - right.samples[index * 4 + channel]
                    #expect(abs(difference) <= 1)
                }
            }
        }
    }
}
