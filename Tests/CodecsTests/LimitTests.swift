import Codecs
import PrefetchModel
import Testing

@Suite(.timeLimit(.minutes(5))) struct LimitTests {
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

    @Test func estimatesMemoryFromTheHeader() throws {
        let header = try imageHeader(Samples.baselineJPEG)
        let coefficients = 2 * (32 * 32 + 2 * 16 * 16)
        #expect(header.decodeMemoryBytes(for: Recipe()) >= coefficients + header.pixels)
        #expect(
            header.decodeMemoryBytes(for: Recipe(encoding: .original))
                < header.decodeMemoryBytes(for: Recipe()))
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
