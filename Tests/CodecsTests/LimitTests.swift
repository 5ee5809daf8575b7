import PrefetchModel
import Testing

@testable import Codecs

@Suite(.serialized, .timeLimit(.minutes(5))) struct LimitTests {
    @Test(arguments: Samples.jpegs + Samples.pngs)
    func refusesMorePixelsThanAllowed(source: [UInt8]) throws {
        let pixels = try imageHeader(source).pixels
        #expect(refusal(source, limits: CodecLimits(maximumPixels: pixels)) == nil)
        guard case .tooManyPixels = refusal(source, limits: CodecLimits(maximumPixels: pixels - 1))
        else {
            Issue.record("accepted")
            return
        }
    }

    /// A legal file of 8×8 black pixels whose scans bring nothing: one of DC, then one for each of the
    /// other coefficients and bit planes.
    private func emptyScans(_ count: Int) -> [UInt8] {
        let quantisation = [0xFF, 0xDB, 0, 67, 0] + [UInt8](repeating: 1, count: 64)
        let frame: [UInt8] = [0xFF, 0xC2, 0, 11, 8, 0, 8, 0, 8, 1, 1, 0x11, 0]
        // One code of one bit each: "no difference" and "end of block".
        let codes = [UInt8(1)] + [UInt8](repeating: 0, count: 15) + [0]
        let tables = [0xFF, 0xC4, 0, 38, 0x00] + codes + [0x10] + codes
        var scans: [UInt8] = [0xFF, 0xDA, 0, 8, 1, 1, 0, 0, 0, 0, 0x7F]
        for index in 0..<count - 1 {
            let coefficient = UInt8(index % 63 + 1)
            let precision: UInt8 = index < 63 ? 0x01 : 0x10
            scans += [0xFF, 0xDA, 0, 8, 1, 1, 0, coefficient, coefficient, precision, 0x7F]
        }
        return [0xFF, 0xD8] + quantisation + frame + tables + scans + [0xFF, 0xD9]
    }

    @Test(arguments: everyRecipe)
    func refusesAScanBomb(recipe: Recipe) {
        #expect(refusal(emptyScans(100), recipe) == nil)
        #expect(refusal(emptyScans(101), recipe) == .limitExceeded("more scans than allowed"))
    }

    @Test func refusesMoreScansThanTheLimitSays() {
        var limits = CodecLimits()
        let scans = Samples.progressiveJPEG.indices.dropLast().count {
            Samples.progressiveJPEG[$0] == 0xFF && Samples.progressiveJPEG[$0 + 1] == 0xDA
        }
        limits.maximumScans = scans
        #expect(refusal(Samples.progressiveJPEG, limits: limits) == nil)
        limits.maximumScans = scans - 1
        #expect(
            refusal(Samples.progressiveJPEG, limits: limits)
                == .limitExceeded("more scans than allowed"))
    }

    private static let late = CodecError.limitExceeded("more processor time than allowed")

    @Test(arguments: everyRecipe)
    func refusesWhatTakesTooLong(recipe: Recipe) throws {
        let side = 512
        let samples = (0..<side * side * 3).map { UInt8(truncatingIfNeeded: $0 / 7) }
        let jpeg = try Pixels(width: side, height: side, samples: samples).jpeg(quality: 95)
        let png = try stored(jpeg, Recipe(encoding: .png)).bytes
        var limits = CodecLimits()
        for source in [jpeg, png] {
            #expect(refusal(source, recipe, limits: limits) == nil)
        }
        limits.maximumTime = .zero
        for source in [jpeg, png] {
            #expect(refusal(source, recipe, limits: limits) == Self.late)
        }
    }

    /// Many scans of many blocks that hold nothing: 3 MB that keep a core busy for seconds.
    @Test func endsAtItsTime() throws {
        let side = 4096
        var source = emptyScans(100)
        let frame = try #require(
            source.indices.first { source[$0...].starts(with: [0xFF, 0xC2]) })
        let bytes = [UInt8(side >> 8), UInt8(side & 255)]
        source.replaceSubrange(frame + 5..<frame + 9, with: bytes + bytes)
        // One bit for each block, eight in a byte.
        let data = [UInt8](repeating: 0, count: side / 8 * side / 8 / 8)
        var whole: [UInt8] = []
        for byte in source { byte == 0x7F ? whole += data : whole.append(byte) }
        var limits = CodecLimits()
        limits.maximumTime = .milliseconds(50)
        let begin = ThreadClock.now
        #expect(refusal(whole, limits: limits) == Self.late)
        #expect(ThreadClock.now - begin < .milliseconds(400))
        #expect(refusal(whole) == nil)
        #expect(ThreadClock.now - begin > .milliseconds(100))
    }

    @Test func estimatesMemoryFromTheHeader() throws {
        let header = try imageHeader(Samples.baselineJPEG)
        let coefficients = 2 * (32 * 32 + 2 * 16 * 16)
        #expect(header.decodeMemoryBytes(for: Recipe()) >= coefficients + header.pixels)
        #expect(
            header.decodeMemoryBytes(for: Recipe(encoding: .original))
                < header.decodeMemoryBytes(for: Recipe()))
    }

    /// As cameras make them, within what `--memory` leaves for decoding by default.
    @Test(arguments: Recipe.Encoding.allCases, [ImageFormat.jpeg, .png])
    func aPictureOf24MegapixelsFits(encoding: Recipe.Encoding, format: ImageFormat) {
        for isProgressive in [false, true] {
            let header = ImageHeader(
                format: format, widthInPixels: 6000, heightInPixels: 4000, bitDepth: 8,
                isProgressiveOrInterlaced: isProgressive, orientation: 1, channels: 3,
                coefficientBytes: format == .jpeg ? 24_000_000 * 3 : 0, sourceBytes: 12_000_000)
            #expect(header.decodeMemoryBytes(for: Recipe(encoding: encoding)) <= 192 << 20)
        }
    }

    @Test(arguments: PNGEffort.allCases)
    func aLineIsEstimatedByItsPixels(effort: PNGEffort) {
        var recipe = Recipe()
        recipe.pngEffort = effort
        for (width, height) in [(65_500, 1), (1, 65_500)] {
            let header = ImageHeader(
                format: .png, widthInPixels: width, heightInPixels: height, bitDepth: 8,
                isProgressiveOrInterlaced: false, orientation: 6, channels: 4,
                coefficientBytes: 0, sourceBytes: 262_000)
            #expect(header.decodeMemoryBytes(for: recipe) < 20 << 20)
        }
    }

    @Test(.enabled(if: TestData.isAvailable))
    func refusesBombsQuickly() throws {
        let clock = ContinuousClock()
        for path in try TestData.paths(in: "bombs") {
            let source = try TestData.bytes(path)
            let elapsed = clock.measure { _ = refusal(source) }
            #expect(elapsed < .seconds(5), "\(path)")
        }
        guard case .tooManyPixels = refusal(try TestData.bytes("bombs/lottapixel.jpg")) else {
            Issue.record("lottapixel.jpg is not refused for its pixels")
            return
        }
    }

    @Test(.enabled(if: TestData.isAvailable))
    func refusesUnsupportedFormatsByName() throws {
        for path in try TestData.paths(in: "unsupported") {
            switch refusal(try TestData.bytes(path)) {
            case .unsupported, .notAnImage: break
            case let other: Issue.record("\(path): \(other as Any)")
            }
        }
    }
}
