import PrefetchModel
import SeededRandom
import Testing

@testable import Codecs

@Suite(.timeLimit(.minutes(15)))
struct ThumbHashPictureTests {
    private func thumbHash(_ source: Pixels) throws -> [UInt8] {
        let jpeg = try source.jpeg(quality: 95)
        let made = try jpeg.withUnsafeBytes { bytes in
            try ImageProcessor.process(
                bytes, header: header(of: bytes), recipes: [Recipe(encoding: .png)],
                wantsPlaceholder: true
            ).placeholder
        }
        return try #require(made).thumbHash
    }

    /// The colours of the quarters of a picture.
    private func quarters(_ pixels: [UInt8], _ width: Int, _ height: Int, channels: Int) -> [[Int]]
    {
        [(0, 0), (1, 0), (0, 1), (1, 1)].map { column, row in
            var sums = [0, 0, 0]
            for y in (row * height / 2)..<((row + 1) * height / 2) {
                for x in (column * width / 2)..<((column + 1) * width / 2) {
                    for channel in 0..<3 {
                        sums[channel] += Int(pixels[(y * width + x) * channels + channel])
                    }
                }
            }
            return sums.map { $0 / ((width / 2) * (height / 2)) }
        }
    }

    /// The picture has the proportions of its source, and its colours in the same places.
    @Test(arguments: [(96, 64), (64, 96), (80, 80)])
    func showsTheSource(width: Int, height: Int) throws {
        var samples: [UInt8] = []
        for y in 0..<height {
            for x in 0..<width {
                samples += [
                    UInt8(x * 255 / width), UInt8(y * 255 / height),
                    UInt8(255 - (x * 255 / width + y * 255 / height) / 2),
                ]
            }
        }
        let picture = ThumbHashPicture(
            try thumbHash(Pixels(width: width, height: height, samples: samples)))
        let ratio = Double(picture.widthInPixels) / Double(picture.heightInPixels)
        #expect(abs(ratio - Double(width) / Double(height)) < 0.25, "\(ratio)")
        #expect(!picture.hasAlpha)
        let shown = quarters(
            picture.pixels, picture.widthInPixels, picture.heightInPixels, channels: 4)
        let expected = quarters(samples, width, height, channels: 3)
        for (first, second) in zip(shown.joined(), expected.joined()) {
            // ThumbHash has 4 bits a wave.
            #expect(abs(first - second) < 40, "\(shown), \(expected)")
        }
    }

    @Test func pngHasThePixels() throws {
        for seed in 1...20 as ClosedRange<UInt64> {
            var random = SplitMix(seed: seed)
            var hash = (0..<24).map { _ in UInt8(truncatingIfNeeded: random.next()) }
            // With and without alpha.
            hash[2] = hash[2] & 0x7F | (seed % 2 == 0 ? 0x80 : 0)
            let picture = ThumbHashPicture(hash)
            let rows = try PackedRows(png: picture.png())
            #expect(rows.width == picture.widthInPixels, "seed \(seed)")
            #expect(rows.height == picture.heightInPixels, "seed \(seed)")
            let isOpaque = stride(from: 3, to: picture.pixels.count, by: 4).allSatisfy {
                picture.pixels[$0] == 255
            }
            #expect(picture.hasAlpha || isOpaque, "seed \(seed)")
            guard rows.colorType == (picture.hasAlpha ? 6 : 2), rows.bitDepth == 8 else { continue }
            let channels = picture.hasAlpha ? 4 : 3
            let expected = picture.pixels.indices.filter { $0 % 4 < channels }
                .map { picture.pixels[$0] }
            #expect(rows.samples == expected, "seed \(seed)")
        }
    }

    /// Any bytes are a picture, since reports are files that others write.
    @Test func anyBytesAreAPicture() throws {
        for count in 0...25 {
            for byte in [0, 0x7F, 0x80, 0xFF] as [UInt8] {
                let picture = ThumbHashPicture(Array(repeating: byte, count: count))
                #expect((1...24).contains(picture.widthInPixels))
                #expect((1...24).contains(picture.heightInPixels))
                #expect(
                    picture.pixels.count == picture.widthInPixels * picture.heightInPixels * 4)
                #expect(try !picture.png().isEmpty)
            }
        }
    }
}
