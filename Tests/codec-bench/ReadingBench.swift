import CJPEG
import CPNG
import Glibc

extension CodecBench {
    /// Reads PNGs to pixels in two ways: row by row by libpng, and by unpacking the image data in
    /// one piece. Others are read twice in the same way.
    ///
    /// Prints: files, files unpacked in one piece, pixels, and ``PairedBench/figures``, separated
    /// by tabs.
    static func measureReading(_ files: [[UInt8]], rounds: Int) {
        var (pixels, wholeFiles) = (0, 0)
        let bench = PairedBench(files: files.count, rounds: rounds) { file, way, isFirst in
            var limits = cpng_limits(
                maximum_pixels: 1 << 30, maximum_warnings: 100,
                maximum_whole_bytes: way == 1 ? .max : 0, interruption: nil, lacks_end: false,
                unended: cpng_form())
            var image = cpng_image()
            var message = [CChar](repeating: 0, count: Int(CCODEC_MESSAGE_BYTES))
            let status = cpng_decode(files[file], files[file].count, &limits, &image, nil, &message)
            guard status == CCODEC_OK else { return nil }
            cpng_image_free(&image)
            if isFirst, way == 1 {
                pixels += Int(image.width) * Int(image.height)
                wholeFiles += image.is_whole ? 1 : 0
            }
            return Double(image.nanoseconds) / 1e9
        }
        guard let bench else { fail("one of the files is no PNG that is decoded") }
        show([files.count, wholeFiles, pixels], bench.figures)
    }

    /// Decodes JPEGs at a fraction of their size in two ways: by libjpeg alone, and from
    /// coefficients that our decoder reads.
    ///
    /// Prints: the scale's divisor, files, files read by our decoder, pixels of the sources, and
    /// ``PairedBench/figures``, separated by tabs.
    static func measureScale(_ files: [[UInt8]], _ scale: UInt32, rounds: Int) {
        var (pixels, readHere) = (0, 0)
        var firsts: [Int: [UInt8]] = [:]
        let bench = PairedBench(files: files.count, rounds: rounds) { file, way, isFirst in
            var limits = cjpeg_limits(
                maximum_pixels: 1 << 40, maximum_scans: 1000, maximum_warnings: 100,
                maximum_memory_bytes: 1 << 30, least_own_pixels: way == 1 ? 0 : .max,
                interruption: nil, preview: nil, inks: cjpeg_inks())
            var result = cjpeg_result()
            defer { free(result.bytes) }
            var message = [CChar](repeating: 0, count: Int(CCODEC_MESSAGE_BYTES))
            let status = cjpeg_decode_scaled(
                files[file], files[file].count, &limits, 0, scale, &result, &message)
            guard status == CCODEC_OK, let bytes = result.bytes else { return nil }
            if isFirst {
                if way == 1 {
                    pixels += Int(result.width) * Int(result.height) * Int(scale * scale)
                    readHere += result.was_read_here ? 1 : 0
                }
                // Both ways give the same pixels.
                let made = Array(UnsafeBufferPointer(start: bytes, count: result.length))
                if let other = firsts.removeValue(forKey: file) {
                    guard other == made else { return nil }
                } else {
                    firsts[file] = made
                }
            }
            return Double(result.decode_nanoseconds) / 1e9
        }
        guard let bench else {
            fail("one of the files is no JPEG that is decoded, or has other pixels")
        }
        show([Int(scale), files.count, readHere, pixels], bench.figures)
    }

    private static func show(_ counts: [Int], _ figures: [Double]) {
        print((counts.map(String.init) + figures.map { "\($0)" }).joined(separator: "\t"))
    }
}
