import CInterruption
import CResample
import SeededRandom
import Testing

/// Rectangles of pictures, interruption, and memory.
@Suite(.timeLimit(.minutes(15))) struct ResamplingRectangleTests {
    @Test(arguments: [CRESAMPLE_AUTOMATIC.rawValue, CRESAMPLE_LANCZOS3.rawValue], [1, 3, 4])
    func partEqualsCropOfWhole(filter: UInt32, channels: Int) throws {
        let picture = ResampledPicture(noise: 1, 256, 192, channels: channels)
        let filter = cresample_filter(rawValue: filter)
        // Powers of two, so that all positions are equal numbers.
        let whole = try picture.resized(to: (32, 24), filter: filter)
        let part = try picture.resized(
            to: (16, 9), from: cresample_rectangle(x: 64, y: 32, width: 128, height: 72),
            filter: filter)
        for y in 0..<9 {
            for x in 0..<16 { #expect(part[x, y] == whole[x + 8, y + 4]) }
        }
    }

    @Test(arguments: [
        cresample_rectangle(x: 0.5, y: 0, width: 120, height: 80),
        cresample_rectangle(x: 20.25, y: 30.75, width: 41.5, height: 27.125),
        cresample_rectangle(x: 120.9, y: 79.9, width: 0.1, height: 0.1),
        cresample_rectangle(x: 0, y: 0, width: 0.5, height: 80),
    ])
    func acceptsFractionalRectangles(rectangle: cresample_rectangle) throws {
        let picture = ResampledPicture(noise: 2, 121, 80, channels: 3)
        let targets: [ResampledPicture.Size] = [(30, 20), (7, 33)]
        for target in targets {
            let made = try picture.resized(
                to: target, from: rectangle, filter: CRESAMPLE_LANCZOS3)
            let reference = picture.reference(to: target, from: rectangle)
            let largest = zip(made.samples, reference).map { abs(Double($0) - $1) }.max()
            #expect(try #require(largest) <= 1)
        }
    }

    /// The centre of an odd number of pixels is the centre of the result.
    @Test(arguments: [CRESAMPLE_AUTOMATIC.rawValue, CRESAMPLE_LANCZOS3.rawValue])
    func centredPartOfSymmetricPictureIsSymmetric(filter: UInt32) throws {
        let picture = ResampledPicture(301, 40, channels: 3) { x, y, channel in
            (min(x, 300 - x) * (7 + channel) + y * 3) % 256
        }
        let made = try picture.resized(
            to: (25, 10), from: cresample_rectangle(x: 50.5, y: 0, width: 200, height: 40),
            filter: cresample_filter(rawValue: filter))
        // Averages are computed from the left, so they are not symmetric.
        let most = filter == CRESAMPLE_LANCZOS3.rawValue ? 1 : 12
        for y in 0..<10 {
            for x in 0..<12 {
                for (left, right) in zip(made[x, y], made[24 - x, y]) {
                    #expect(abs(left - right) <= most)
                }
            }
        }
    }

    @Test(arguments: [1, 3, 4], [8, 16])
    func cancelledWorkEnds(channels: Int, bitDepth: Int) throws {
        let picture = ResampledPicture(noise: 3, 700, 300, channels: channels, bitDepth: bitDepth)
        var flag = cinterruption_flag()
        cinterruption_set(&flag)
        let ways: [(ResampledPicture.Size, cresample_filter)] = [
            ((70, 30), CRESAMPLE_AUTOMATIC), ((350, 150), CRESAMPLE_LANCZOS3),
            ((700, 300), CRESAMPLE_AUTOMATIC),
        ]
        for (target, filter) in ways {
            withUnsafePointer(to: flag) { flag in
                let (status, cause, _) = interrupted(picture, to: target, filter, flag)
                #expect(status == CCODEC_INTERRUPTED)
                #expect(cause == CINTERRUPTION_CANCELLED)
            }
            let (status, cause, made) = interrupted(picture, to: target, filter, nil)
            let expected = try picture.resized(to: target, filter: filter)
            #expect(status == CCODEC_OK)
            #expect(cause == CINTERRUPTION_NONE)
            #expect(made == expected)
        }
    }

    private func interrupted(
        _ picture: ResampledPicture, to target: ResampledPicture.Size, _ filter: cresample_filter,
        _ flag: UnsafePointer<cinterruption_flag>?
    ) -> (ccodec_status, cinterruption_cause, ResampledPicture?) {
        var interruption = cinterruption(
            flag: flag, deadline_nanoseconds: 0, earliest_nanoseconds: 0, unseen_bytes: 0,
            cause: CINTERRUPTION_NONE)
        let (status, made) = withUnsafeMutablePointer(to: &interruption) { interruption in
            picture.resize(
                to: target, from: picture.rectangle,
                cresample_options(
                    filter: filter, is_linear: false, path: CRESAMPLE_FASTEST,
                    interruption: interruption))
        }
        return (status, interruption.cause, made)
    }

    private func memory(
        _ width: UInt32, _ height: UInt32, _ targetWidth: UInt32, _ targetHeight: UInt32,
        filter: cresample_filter = CRESAMPLE_AUTOMATIC, channels: Int32 = 3
    ) -> Int {
        // Neither pointer is dereferenced.
        var byte: UInt8 = 0
        return withUnsafeMutablePointer(to: &byte) { pixels in
            var source = cresample_source(
                pixels: pixels, stride: 0, width: width, height: height, channels: channels,
                bit_depth: 8)
            var rectangle = cresample_rectangle(
                x: 0, y: 0, width: Double(width), height: Double(height))
            var options = cresample_options(
                filter: filter, is_linear: false, path: CRESAMPLE_FASTEST, interruption: nil)
            var target = cresample_target(
                pixels: pixels, stride: 0, width: targetWidth, height: targetHeight)
            return cresample_memory(&source, &rectangle, &options, &target)
        }
    }

    @Test func memoryGrowsWithRowsOnly() {
        let thumbnail = memory(6000, 4000, 600, 400)
        #expect(thumbnail < 1 << 20)
        #expect(memory(6000, 40000, 600, 4000) == thumbnail)
        #expect(memory(6000, 4000, 600, 400, channels: 4) < 4 << 20)
        #expect(memory(6000, 4000, 600, 400, filter: CRESAMPLE_LANCZOS3) > thumbnail)
        // 6 × 3 rows within the filter's reach, 16 bits a sample, and the buffers for one row.
        #expect(memory(6000, 4000, 2000, 1333) < 32 * 6000 * 3 * 2)
        #expect(memory(.max, 1, .max, 1, channels: 4) > 1 << 37)
    }
}
