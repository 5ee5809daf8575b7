import CPNG
import Glibc

/// Reads PNGs to pixels in two ways: row by row by libpng, and by unpacking the image data in one
/// piece. In each round both ways read every file, alternating.
struct ReadingBench: CustomStringConvertible {
    private var pixels = 0
    /// The files with image data unpacked in one piece; others are read twice in the same way.
    private var wholeFiles = 0
    /// CPU seconds for all files, by round.
    private var rowSeconds: [Double] = []
    private var wholeSeconds: [Double] = []
    private let files: Int

    /// Returns nil if a file cannot be read.
    init?(_ files: [[UInt8]], rounds: Int) {
        self.files = files.count
        for round in 0...rounds {
            var seconds = [0.0, 0.0]
            for file in files {
                for turn in 0..<2 {
                    let way = (turn + round) % 2
                    guard let image = ReadingBench.read(file, asWhole: way == 1) else { return nil }
                    seconds[way] += Double(image.nanoseconds) / 1e9
                    guard round == 0, way == 1 else { continue }
                    pixels += Int(image.width) * Int(image.height)
                    if image.is_whole { wholeFiles += 1 }
                }
            }
            // The first round warms up.
            guard round > 0 else { continue }
            rowSeconds.append(seconds[0])
            wholeSeconds.append(seconds[1])
        }
    }

    /// The result's rows are freed already.
    private static func read(_ file: [UInt8], asWhole: Bool) -> cpng_image? {
        var limits = cpng_limits(
            maximum_pixels: 1 << 30, maximum_chunk_bytes: 4 << 20, maximum_cached_chunks: 128,
            maximum_warnings: 100, maximum_whole_bytes: asWhole ? .max : 0, interruption: nil)
        var image = cpng_image()
        var message = [CChar](repeating: 0, count: Int(CPNG_MESSAGE_BYTES))
        guard cpng_decode(file, file.count, &limits, &image, nil, &message) == CPNG_OK else {
            return nil
        }
        cpng_image_free(&image)
        return image
    }

    private static func median(_ values: [Double]) -> Double { values.sorted()[values.count / 2] }

    /// Tab-separated: files, files unpacked in one piece, pixels, the median seconds of a round row
    /// by row and in one piece, the median, minimum and maximum of the rounds' ratios.
    var description: String {
        let ratios = zip(rowSeconds, wholeSeconds).map(/)
        let numbers = [
            ReadingBench.median(rowSeconds), ReadingBench.median(wholeSeconds),
            ReadingBench.median(ratios), ratios.min() ?? 0, ratios.max() ?? 0,
        ]
        return ([files, wholeFiles, pixels].map(String.init) + numbers.map { "\($0)" })
            .joined(separator: "\t")
    }
}
