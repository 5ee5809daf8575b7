import CPNG
import CResample
import Glibc
import PrefetchModel
import Testing

@testable import Codecs

/// Resized rasters, compared with the C boundary's result for the same samples.
@Suite(.timeLimit(.minutes(15))) struct RasterResamplingTests {
    /// A raster with the picture's rows: a spare byte, then samples.
    private func raster(of picture: ResampledPicture) throws -> Raster {
        let bytes = picture.width * picture.channels * picture.bitDepth / 8
        let rows = try #require(malloc((bytes + 1) * picture.height)).bindMemory(
            to: UInt8.self, capacity: (bytes + 1) * picture.height)
        var place = 0
        for y in 0..<picture.height {
            rows[place] = 0
            place += 1
            for x in 0..<picture.width {
                for sample in picture[x, y] {
                    if picture.bitDepth == 16 {
                        rows[place] = UInt8(sample >> 8)
                        place += 1
                    }
                    rows[place] = UInt8(sample & 255)
                    place += 1
                }
            }
        }
        var image = cpng_image_of(
            rows, UInt32(picture.width), UInt32(picture.height), 3, nil)
        image.bit_depth = Int32(picture.bitDepth)
        image.color_type = [0, 0, 4, 2, 6][picture.channels]
        image.row_bytes = bytes
        image.filter_distance = Int32(picture.channels * picture.bitDepth / 8)
        return Raster(owning: image)
    }

    @Test(arguments: 1...4, [8, 16])
    func rasterIsResized(channels: Int, bitDepth: Int) throws {
        let picture = ResampledPicture(noise: 1, 200, 120, channels: channels, bitDepth: bitDepth)
        let raster = try raster(of: picture)
        let interruption = Interruption(CodecLimits(), nil)
        for isLinear in [false, true] {
            let area = Resampling.Area(x: 10, y: 4.5, width: 180, height: 111)
            let made = try raster.resampled(
                Resampling(
                    area: area, widthInPixels: 30, heightInPixels: 19, isLinear: isLinear),
                interruption)
            let expected = try self.raster(
                of: picture.resized(
                    to: (30, 19),
                    from: cresample_rectangle(
                        x: area.x, y: area.y, width: area.width, height: area.height),
                    isLinear: isLinear))
            let (width, height) = (made.widthInPixels, made.heightInPixels)
            let (madeChannels, depth) = (made.channels, made.bitDepth)
            let (left, right) = (made.rows.packed, expected.rows.packed)
            #expect([width, height, madeChannels, depth] == [30, 19, channels, bitDepth])
            #expect(left == right)
        }
    }

    @Test func cancelledResizingThrows() throws {
        let cancellation = Cancellation()
        cancellation.cancel()
        let raster = try raster(of: ResampledPicture(noise: 2, 400, 300, channels: 3))
        #expect(throws: CodecError.cancelled) {
            _ = try raster.resampled(
                Resampling(
                    area: .init(x: 0, y: 0, width: 400, height: 300), widthInPixels: 40,
                    heightInPixels: 30),
                Interruption(CodecLimits(), cancellation))
        }
    }
}
