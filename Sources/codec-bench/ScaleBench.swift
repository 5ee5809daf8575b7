import CJPEG
import Glibc

/// Decodes JPEGs at a fraction of their size in two ways: by libjpeg alone, and from coefficients
/// that our decoder reads. In each round both ways decode every file, alternating.
struct ScaleBench: CustomStringConvertible {
    private let scale: UInt32
    private let files: Int
    private var pixels = 0
    /// The files that our decoder has read; others are decoded twice in the same way.
    private var readHere = 0
    /// CPU seconds for all files, by round.
    private var librarySeconds: [Double] = []
    private var ownSeconds: [Double] = []

    /// Returns nil if a file cannot be decoded, or the pixels differ.
    init?(_ files: [[UInt8]], scale: UInt32, rounds: Int) {
        self.scale = scale
        self.files = files.count
        for round in 0...rounds {
            var seconds = [0.0, 0.0]
            for (number, file) in files.enumerated() {
                var results = [cjpeg_result(), cjpeg_result()]
                defer { for result in results { free(result.bytes) } }
                for turn in 0..<2 {
                    let way = (turn + round + number) % 2
                    guard let result = ScaleBench.decoded(file, scale, isOwn: way == 1) else {
                        return nil
                    }
                    results[way] = result
                    seconds[way] += Double(result.decode_nanoseconds) / 1e9
                }
                // The first round warms up.
                guard round == 0 else { continue }
                guard ScaleBench.isEqual(results[0], results[1]) else { return nil }
                pixels += Int(results[1].width) * Int(results[1].height) * Int(scale * scale)
                if results[1].was_read_here { readHere += 1 }
            }
            guard round > 0 else { continue }
            librarySeconds.append(seconds[0])
            ownSeconds.append(seconds[1])
        }
    }

    private static func decoded(_ file: [UInt8], _ scale: UInt32, isOwn: Bool) -> cjpeg_result? {
        var limits = cjpeg_limits(
            maximum_pixels: 1 << 40, maximum_scans: 1000, maximum_warnings: 100,
            maximum_memory_bytes: 1 << 30, least_own_pixels: isOwn ? 0 : .max, interruption: nil,
            preview: nil, inks: cjpeg_inks())
        var result = cjpeg_result()
        var message = [CChar](repeating: 0, count: Int(CJPEG_MESSAGE_BYTES))
        let status = cjpeg_decode_scaled(file, file.count, &limits, 0, scale, &result, &message)
        return status == CJPEG_OK ? result : nil
    }

    private static func isEqual(_ one: cjpeg_result, _ other: cjpeg_result) -> Bool {
        guard one.length == other.length, let bytes = one.bytes, let others = other.bytes else {
            return false
        }
        return memcmp(bytes, others, one.length) == 0
    }

    private static func median(_ values: [Double]) -> Double { values.sorted()[values.count / 2] }

    /// Tab-separated: the scale's divisor, files, files read by our decoder, pixels of the sources,
    /// the median seconds of a round by libjpeg and by our decoder, the median, minimum and maximum
    /// of the rounds' ratios.
    var description: String {
        let ratios = zip(librarySeconds, ownSeconds).map(/)
        let numbers = [
            ScaleBench.median(librarySeconds), ScaleBench.median(ownSeconds),
            ScaleBench.median(ratios), ratios.min() ?? 0, ratios.max() ?? 0,
        ]
        return ([Int(scale), files, readHere, pixels].map(String.init) + numbers.map { "\($0)" })
            .joined(separator: "\t")
    }
}
