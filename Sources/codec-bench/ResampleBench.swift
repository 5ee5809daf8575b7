import CResample
import Glibc

/// Resizes a picture as a run does, on one thread, and prints the cost.
///
/// Usage: `codec-bench resample WIDTHxHEIGHT gamma|linear ROUNDS OUTPUT FILE`. File and output are
/// binary 8-bit PGM or PPM. Standard output has a line: pixels of the source, CPU seconds (the
/// minimum of the rounds), bytes of memory without both pictures, separated by tabs.
struct ResampleBench {
    private let source: [UInt8]
    private let width: UInt32
    private let height: UInt32
    private let channels: Int
    /// The offset of the samples.
    private let start: Int

    var pixels: Int { Int(width) * Int(height) }

    /// Returns nil for any other kind of file.
    init?(_ file: [UInt8]) {
        guard let picture = PortablePixmap(file) else { return nil }
        (width, height) = (picture.width, picture.height)
        channels = picture.channels
        start = picture.start
        source = file
    }

    /// Returns the picture as a file, the minimum time in seconds, and the memory in bytes; nil
    /// without memory.
    func resized(
        to size: (width: UInt32, height: UInt32), isLinear: Bool, rounds: Int
    ) -> (file: [UInt8], seconds: Double, memoryBytes: Int)? {
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
                    pixels: from + start, stride: Int(width) * channels, width: width,
                    height: height, channels: Int32(channels), bit_depth: 8)
                var target = cresample_target(
                    pixels: to, stride: Int(size.width) * channels, width: size.width,
                    height: size.height)
                memoryBytes = cresample_memory(&source, &whole, &options, &target)
                for _ in 0..<rounds {
                    let begin = seconds()
                    guard cresample_resize(&source, &whole, &options, &target) == CRESAMPLE_OK
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

    /// The processor time of this thread, in seconds.
    private func seconds() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }
}
