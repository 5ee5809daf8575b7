import CJPEG
import CPixels
import Codecs
import Glibc

#if AVIF
    import CAVIF
#endif
#if WebP
    import CWebP
#endif

/// Encodes a picture at each quality of each format, decodes and compares it.
/// `Scripts/bench/quality-curves` makes its tables from the output.
///
/// Usage: `codec-bench curves FILE [METHOD SPEED]`. The file is a binary 8-bit PPM; libwebp's
/// method and aom's speed are 4 and 6 otherwise. Standard output has a line for
/// each format and quality: `jpeg`, `webp` or `avif`, the library's own quality, bytes, similarity
/// (`cpixels_similarity`), CPU seconds for encoding, separated by tabs.
struct CurveBench {
    private let width: UInt32
    private let height: UInt32
    private let samples: [UInt8]
    var method: Int32 = 4
    var speed: Int32 = 6

    /// Returns nil for any other kind of file.
    init?(_ file: [UInt8]) {
        guard let picture = PortablePixmap(file), picture.channels == 3 else { return nil }
        width = picture.width
        height = picture.height
        samples = Array(file[picture.start...])
    }

    private var stride: Int { Int(width) * 3 }

    func run() {
        for quality in Swift.stride(from: 5, through: 100, by: 5) {
            measure("jpeg", quality, encodedJPEG, decodedJPEG)
            #if WebP
                measure("webp", quality, encodedWebP, decodedWebP)
            #endif
        }
        #if AVIF
            for quantizer in Swift.stride(from: 0, through: 63, by: 3) {
                measure("avif", quantizer, encodedAVIF, decodedAVIF)
            }
        #endif
    }

    /// Memory allocated by C, freed with the object.
    private final class Bytes {
        let start: UnsafeMutablePointer<UInt8>
        let count: Int

        init(_ start: UnsafeMutablePointer<UInt8>, _ count: Int) {
            self.start = start
            self.count = count
        }

        deinit { free(start) }
    }

    private func measure(
        _ name: String, _ quality: Int, _ encode: (Int) -> Bytes?,
        _ decode: (Bytes) -> (rows: Bytes, offset: Int, stride: Int)?
    ) {
        let begin = seconds()
        guard let file = encode(quality) else { return }
        let time = seconds() - begin
        guard let decoded = decode(file) else { return }
        var similarity = 0.0
        samples.withUnsafeBufferPointer { samples in
            guard let start = samples.baseAddress else { return }
            var first = ccodec_picture(
                pixels: UnsafeMutablePointer(mutating: start), stride: stride, width: width,
                height: height, channels: 3)
            var second = ccodec_picture(
                pixels: decoded.rows.start + decoded.offset, stride: decoded.stride, width: width,
                height: height, channels: 3)
            _ = cpixels_similarity(&first, &second, &similarity, nil)
        }
        print(name, quality, file.count, similarity, time, separator: "\t")
    }

    /// Uses 4:2:0 chroma, as photographs are encoded.
    private func encodedJPEG(_ quality: Int) -> Bytes? {
        var result = cjpeg_result()
        var message = [CChar](repeating: 0, count: Int(CCODEC_MESSAGE_BYTES))
        let status = cjpeg_encode(
            samples, stride, width, height, 3, Int32(quality), true, [], 0, .max / 4, nil, &result,
            &message)
        return status == CCODEC_OK ? result.bytes.map { Bytes($0, result.length) } : nil
    }

    private func decodedJPEG(_ file: Bytes) -> (rows: Bytes, offset: Int, stride: Int)? {
        var (result, limits) = (cjpeg_result(), cjpeg_limits())
        limits.maximum_pixels = .max
        limits.maximum_scans = 1000
        limits.maximum_memory_bytes = 1 << 30
        var message = [CChar](repeating: 0, count: Int(CCODEC_MESSAGE_BYTES))
        let status = cjpeg_decode_scaled(file.start, file.count, &limits, 1, 1, &result, &message)
        guard status == CCODEC_OK, let rows = result.bytes else { return nil }
        return (Bytes(rows, 0), 1, stride + 1)
    }

    #if WebP
        private func encodedWebP(_ quality: Int) -> Bytes? {
            var options = cwebp_options(
                is_lossless: false, quality: Float(quality), method: method, saves_memory: false)
            var (bytes, count): (UnsafeMutablePointer<UInt8>?, Int) = (nil, 0)
            return samples.withUnsafeBufferPointer { samples in
                guard let start = samples.baseAddress else { return nil }
                // Only read.
                var picture = ccodec_picture(
                    pixels: UnsafeMutablePointer(mutating: start), stride: stride, width: width,
                    height: height, channels: 3)
                let status = cwebp_encode(&picture, &options, .max, nil, &bytes, &count)
                return status == CCODEC_OK ? bytes.map { Bytes($0, count) } : nil
            }
        }

        private func decodedWebP(_ file: Bytes) -> (rows: Bytes, offset: Int, stride: Int)? {
            guard let memory = malloc(stride * Int(height)) else { return nil }
            let rows = Bytes(memory.assumingMemoryBound(to: UInt8.self), stride * Int(height))
            var target = cwebp_rows(first: rows.start, stride: stride, channels: 3)
            let status = cwebp_decode(file.start, file.count, width, height, &target, nil)
            return status == CCODEC_OK ? (rows, 0, stride) : nil
        }
    #endif

    #if AVIF
        private func encodedAVIF(_ quantizer: Int) -> Bytes? {
            var options = cavif_options(
                quantizer: Int32(quantizer), speed: speed, halves_chroma: true, is_grey: false,
                searches_repetitions: false)
            var message = [CChar](repeating: 0, count: Int(CCODEC_MESSAGE_BYTES))
            var (bytes, count): (UnsafeMutablePointer<UInt8>?, Int) = (nil, 0)
            return samples.withUnsafeBufferPointer { samples in
                guard let start = samples.baseAddress else { return nil }
                // Only read.
                var picture = ccodec_picture(
                    pixels: UnsafeMutablePointer(mutating: start), stride: stride, width: width,
                    height: height, channels: 3)
                let status = cavif_encode(
                    &picture, nil, 0, nil, 0, nil, 0, &options, nil, &bytes, &count, &message)
                return status == CCODEC_OK ? bytes.map { Bytes($0, count) } : nil
            }
        }

        private func decodedAVIF(_ file: Bytes) -> (rows: Bytes, offset: Int, stride: Int)? {
            var message = [CChar](repeating: 0, count: Int(CCODEC_MESSAGE_BYTES))
            var header = cavif_header()
            guard cavif_read_header(file.start, file.count, 1, &header, &message) == CCODEC_OK
            else {
                return nil
            }
            var limits = cavif_limits(maximum_pixels: 1 << 28, maximum_frames: 1, interruption: nil)
            var (reader, frame) = (OpaquePointer?.none, cavif_frame())
            _ = cavif_open(file.start, file.count, &limits, &header, &message, &reader)
            defer { cavif_close(reader) }
            guard let reader, cavif_next(reader, true, &frame, &message) == CCODEC_OK,
                let rows = frame.rows
            else { return nil }
            return (Bytes(rows, 0), 1, stride + 1)
        }
    #endif

}

/// The processor time of this thread, in seconds.
func seconds() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
}
