import CResample
import Glibc

/// Resizes a picture as a run does, on one thread, and prints the cost.
///
/// Usage: `codec-bench resample WIDTHxHEIGHT gamma|linear ROUNDS OUTPUT FILE`. File and output are
/// binary 8-bit PGM or PPM. Standard output has a line: pixels of the source, CPU seconds (the
/// minimum of the rounds), bytes of memory without both pictures, separated by tabs.
struct ResampleBench {
    private let source: [UInt8]
    private let picture: PortablePixmap

    var pixels: Int { Int(picture.width) * Int(picture.height) }

    /// Returns nil for any other kind of file.
    init?(_ file: [UInt8]) {
        guard let picture = PortablePixmap(file) else { return nil }
        self.picture = picture
        source = file
    }

    /// Returns the picture as a file, the minimum time in seconds, and the memory in bytes; nil
    /// without memory.
    func resized(
        to size: (width: UInt32, height: UInt32), isLinear: Bool, rounds: Int
    ) -> (file: [UInt8], seconds: Double, memoryBytes: Int)? {
        let (width, height, channels) = (picture.width, picture.height, picture.channels)
        var made = [UInt8](repeating: 0, count: Int(size.width) * Int(size.height) * channels)
        var options = cresample_options(
            filter: CRESAMPLE_AUTOMATIC, is_linear: isLinear, path: CRESAMPLE_FASTEST,
            interruption: nil)
        var whole = cresample_rectangle(x: 0, y: 0, width: Double(width), height: Double(height))
        var (least, memoryBytes) = (Double.infinity, 0)
        let isMade = source.withUnsafeBufferPointer { file in
            made.withUnsafeMutableBufferPointer { made in
                guard let from = file.baseAddress, let to = made.baseAddress else { return false }
                var source = cresample_source(
                    pixels: from + picture.start, stride: Int(width) * channels, width: width,
                    height: height, channels: Int32(channels), bit_depth: 8)
                var target = cresample_target(
                    pixels: to, stride: Int(size.width) * channels, width: size.width,
                    height: size.height)
                memoryBytes = cresample_memory(&source, &whole, &options, &target)
                for _ in 0..<rounds {
                    let begin = seconds()
                    guard cresample_resize(&source, &whole, &options, &target) == CCODEC_OK
                    else { return false }
                    least = min(least, seconds() - begin)
                }
                return true
            }
        }
        guard isMade else { return nil }
        let header = "P\(channels == 3 ? 6 : 5)\n\(size.width) \(size.height)\n255\n"
        return (Array(header.utf8) + made, least, memoryBytes)
    }
}

/// The header of a binary 8-bit PGM or PPM.
struct PortablePixmap {
    let width: UInt32
    let height: UInt32
    /// 1 or 3.
    let channels: Int
    /// The offset of the samples.
    let start: Int

    /// Returns nil for any other kind of file.
    init?(_ file: [UInt8]) {
        guard file.count > 2, file[0] == UInt8(ascii: "P"), [0x35, 0x36].contains(file[1]) else {
            return nil
        }
        // Width, height and the largest sample, with one space after the last.
        var (numbers, position) = ([UInt32](), 2)
        while numbers.count < 3 {
            while position < file.count, file[position] <= 32 { position += 1 }
            let digits = file[position...].prefix { (0x30...0x39).contains($0) }
            guard let number = UInt32(String(decoding: digits, as: UTF8.self)), number > 0 else {
                return nil
            }
            numbers.append(number)
            position = digits.endIndex
        }
        let channels = file[1] == 0x36 ? 3 : 1
        guard numbers[2] == 255,
            file.count - position - 1 == Int(numbers[0]) * Int(numbers[1]) * channels
        else { return nil }
        (width, height) = (numbers[0], numbers[1])
        self.channels = channels
        start = position + 1
    }
}
