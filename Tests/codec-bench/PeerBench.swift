import CCodecLibraries
import Glibc

/// The pixel interfaces of libpng and libjpeg-turbo as the reference for our codecs, on one thread.
///
/// The input is trusted: an error of either library ends the program.
enum PeerBench {
    /// Samples without padding.
    struct Picture {
        let width: Int
        let height: Int
        let channels: Int
        var samples: [UInt8]

        var stride: Int { width * channels }
    }

    // MARK: JPEG

    static func decodedJPEG(_ file: [UInt8]) -> Picture {
        let errors = UnsafeMutablePointer<jpeg_error_mgr>.allocate(capacity: 1)
        let input = UnsafeMutablePointer<jpeg_decompress_struct>.allocate(capacity: 1)
        input.initialize(to: jpeg_decompress_struct())
        defer {
            errors.deallocate()
            input.deallocate()
        }
        input.pointee.err = jpeg_std_error(errors)
        jpeg_CreateDecompress(input, JPEG_LIB_VERSION, MemoryLayout<jpeg_decompress_struct>.size)
        return file.withUnsafeBufferPointer { file in
            jpeg_mem_src(input, file.baseAddress, UInt(file.count))
            jpeg_read_header(input, 1)
            if input.pointee.jpeg_color_space != JCS_GRAYSCALE {
                input.pointee.out_color_space = JCS_RGB
            }
            jpeg_start_decompress(input)
            let (width, height) = (input.pointee.output_width, input.pointee.output_height)
            let channels = Int(input.pointee.output_components)
            let stride = Int(width) * channels
            let samples = [UInt8](unsafeUninitializedCapacity: stride * Int(height)) {
                buffer, count in
                count = stride * Int(height)
                while input.pointee.output_scanline < height {
                    var row = buffer.baseAddress.map {
                        $0 + Int(input.pointee.output_scanline) * stride
                    }
                    jpeg_read_scanlines(input, &row, 1)
                }
            }
            jpeg_finish_decompress(input)
            jpeg_destroy_decompress(input)
            return Picture(
                width: Int(width), height: Int(height), channels: channels, samples: samples)
        }
    }

    /// Encodes with 4:2:0 chroma.
    static func encodedJPEG(_ picture: Picture, quality: Int) -> [UInt8] {
        let errors = UnsafeMutablePointer<jpeg_error_mgr>.allocate(capacity: 1)
        let output = UnsafeMutablePointer<jpeg_compress_struct>.allocate(capacity: 1)
        output.initialize(to: jpeg_compress_struct())
        defer {
            errors.deallocate()
            output.deallocate()
        }
        output.pointee.err = jpeg_std_error(errors)
        jpeg_CreateCompress(output, JPEG_LIB_VERSION, MemoryLayout<jpeg_compress_struct>.size)
        var (bytes, length): (UnsafeMutablePointer<UInt8>?, UInt) = (nil, 0)
        jpeg_mem_dest(output, &bytes, &length)
        output.pointee.image_width = JDIMENSION(picture.width)
        output.pointee.image_height = JDIMENSION(picture.height)
        output.pointee.input_components = Int32(picture.channels)
        output.pointee.in_color_space = picture.channels == 1 ? JCS_GRAYSCALE : JCS_RGB
        jpeg_set_defaults(output)
        jpeg_set_quality(output, Int32(quality), 1)
        jpeg_start_compress(output, 1)
        // libjpeg only reads the samples. A mutable copy would count as its time.
        picture.samples.withUnsafeBufferPointer { samples in
            while output.pointee.next_scanline < output.pointee.image_height {
                var row = samples.baseAddress.map {
                    JSAMPROW(mutating: $0 + Int(output.pointee.next_scanline) * picture.stride)
                }
                jpeg_write_scanlines(output, &row, 1)
            }
        }
        jpeg_finish_compress(output)
        jpeg_destroy_compress(output)
        defer { free(bytes) }
        return Array(UnsafeBufferPointer(start: bytes, count: Int(length)))
    }

    /// The decibels between two pictures; nil if they have different sizes.
    static func decibels(_ source: Picture, _ other: Picture) -> Double? {
        guard source.width == other.width, source.height == other.height,
            source.channels == other.channels
        else { return nil }
        let sum = zip(source.samples, other.samples).reduce(0.0) { sum, pair in
            let difference = Double(pair.0) - Double(pair.1)
            return sum + difference * difference
        }
        return 10 * log10(255 * 255 * Double(source.samples.count) / sum)
    }

    /// The decibels of the source encoded from pixels to this many bytes: interpolated between the
    /// two nearest qualities by the logarithm of the size. Starts well below `quality`.
    static func decibels(_ source: Picture, atBytes wanted: Double, quality: Int) -> Double {
        var below: (decibels: Double, size: Double)?
        for next in max(quality - 30, 1)...100 {
            let file = encodedJPEG(source, quality: next)
            let (found, size) = (decibels(source, decodedJPEG(file)) ?? 0, Double(file.count))
            guard size < wanted else {
                guard let below else { return found }
                return below.decibels
                    + (found - below.decibels) * log(wanted / below.size) / log(size / below.size)
            }
            below = (found, size)
        }
        return below?.decibels ?? 0
    }

    // MARK: PNG

    /// A PNG being read: its rows, and the structures that describe it.
    final class ReadPNG {
        fileprivate var png: png_structp?
        fileprivate var info: png_infop?
        fileprivate let file: [UInt8]
        fileprivate var offset = 0
        private(set) var rows: [UInt8] = []
        private(set) var stride = 0
        var width: Int { Int(png_get_image_width(png, info)) }
        var height: Int { Int(png_get_image_height(png, info)) }

        init(_ file: [UInt8]) {
            self.file = file
            png = png_create_read_struct(PNG_LIBPNG_VER_STRING, nil, nil, nil)
            info = png_create_info_struct(png)
            png_set_read_fn(png, Unmanaged.passUnretained(self).toOpaque()) { png, bytes, count in
                let reading = Unmanaged<ReadPNG>.fromOpaque(png_get_io_ptr(png))
                    .takeUnretainedValue()
                guard let bytes, count <= reading.file.count - reading.offset else {
                    png_error(png, "short file")
                }
                reading.file.withUnsafeBufferPointer { file in
                    guard let start = file.baseAddress else { return }
                    bytes.update(from: start + reading.offset, count: count)
                }
                reading.offset += count
            }
            png_read_info(png, info)
            let passes = png_set_interlace_handling(png)
            png_read_update_info(png, info)
            stride = png_get_rowbytes(png, info)
            rows = [UInt8](repeating: 0, count: stride * height)
            rows.withUnsafeMutableBufferPointer { rows in
                for _ in 0..<passes {
                    for y in 0..<height {
                        png_read_row(png, rows.baseAddress.map { $0 + y * stride }, nil)
                    }
                }
            }
            png_read_end(png, nil)
        }

        deinit { png_destroy_read_struct(&png, &info, nil) }

        /// Encodes at libpng's defaults: level 6, adaptive filters, the file's own colour type and
        /// depth. Keeps the meaning of pixels alone: all else would cost bytes that our encoder
        /// does not spend.
        ///
        /// - Returns: The bytes of the file.
        func encodedBytes() -> Int {
            var output = png_create_write_struct(PNG_LIBPNG_VER_STRING, nil, nil, nil)
            var made = png_create_info_struct(output)
            let length = UnsafeMutablePointer<Int>.allocate(capacity: 1)
            length.initialize(to: 0)
            defer {
                png_destroy_write_struct(&output, &made)
                length.deallocate()
            }
            png_set_write_fn(
                output, length,
                { png, _, count in
                    png_get_io_ptr(png).assumingMemoryBound(to: Int.self).pointee += count
                }, { _ in })
            png_set_IHDR(
                output, made, UInt32(width), UInt32(height), Int32(png_get_bit_depth(png, info)),
                Int32(png_get_color_type(png, info)), PNG_INTERLACE_NONE,
                PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT)
            var (palette, alphas, key): (png_colorp?, png_bytep?, png_color_16p?) = (nil, nil, nil)
            var count: Int32 = 0
            if png_get_PLTE(png, info, &palette, &count) != 0 {
                png_set_PLTE(output, made, palette, count)
            }
            if png_get_tRNS(png, info, &alphas, &count, &key) != 0 {
                png_set_tRNS(output, made, alphas, count, key)
            }
            png_write_info(output, made)
            rows.withUnsafeBufferPointer { rows in
                for y in 0..<height {
                    png_write_row(output, rows.baseAddress.map { $0 + y * stride })
                }
            }
            png_write_end(output, nil)
            return length.pointee
        }
    }
}
