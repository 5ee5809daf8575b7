import Codecs
import Glibc
import PrefetchModel

/// Re-encodes images as a run does, on one thread, and prints the cost. `Scripts/bench/run --only
/// codec` uses it. Not installed with the command.
///
/// Usage: `codec-bench EFFORT QUALITY ROUNDS FOLDER FILE...`. PNG stays PNG, JPEG stays JPEG. The
/// result is written to `FOLDER/NAME`, however large. For each file standard output has a line:
/// pixels, CPU seconds for decoding and for encoding (the minimum of the rounds), bytes, name,
/// separated by tabs. Files are read before the clock starts.
///
/// `codec-bench encode FORMAT QUALITY ROUNDS FOLDER FILE...` does the same for another format of
/// `--encode`; the name gets its extension.
///
/// `codec-bench placeholders ROUNDS FILE...` measures placeholders. It prints for each file:
/// pixels, the minimum CPU seconds of a round without and with them, name.
///
/// `codec-bench limit QUALITY FILE...` re-encodes the files on all processors and discards the
/// results. It prints the number of files, and of failures. See ``LimitBench``.
///
/// `codec-bench reading ROUNDS FILE...` reads PNGs to pixels, see ``ReadingBench``. `codec-bench
/// scales ROUNDS FILE...` decodes JPEGs at full size, 1/2, 1/4 and 1/8, see ``ScaleBench``.
///
/// `codec-bench resample` resizes, see ``ResampleBench``. `codec-bench curves` compares formats and
/// qualities, see ``CurveBench``.
@main
struct CodecBench {
    static func main() throws {
        let arguments = CommandLine.arguments.dropFirst()
        if arguments.first == "resample" { return resample(Array(arguments.dropFirst())) }
        if arguments.first == "curves" {
            guard arguments.count == 2, let bench = CurveBench(contents(of: arguments[2])) else {
                fail("usage: codec-bench curves FILE (a binary PPM of 8 bits)")
            }
            return bench.run()
        }
        if arguments.first == "placeholders" {
            return try measurePlaceholders(Array(arguments.dropFirst()))
        }
        if arguments.first == "reading" { return measureReading(Array(arguments.dropFirst())) }
        if arguments.first == "scales" { return measureScales(Array(arguments.dropFirst())) }
        if arguments.first == "limit" { return try measureLimit(Array(arguments.dropFirst())) }
        if arguments.first == "encode" { return try encode(Array(arguments.dropFirst())) }
        guard arguments.count > 4, let effort = EncodingEffort(rawValue: arguments[1]),
            let quality = Int(arguments[2]), (1...100).contains(quality),
            let rounds = Int(arguments[3]), rounds > 0
        else {
            fail("usage: codec-bench EFFORT QUALITY ROUNDS FOLDER FILE...")
        }
        let folder = arguments[4]
        var recipe = Recipe(quality: quality, keepsLarger: true)
        recipe.effort = effort
        try measure(recipe, rounds, Array(arguments.dropFirst(4)), into: folder)
    }

    private static func encode(_ arguments: [String]) throws {
        guard arguments.count > 4, let encoding = Recipe.Encoding(rawValue: arguments[0]),
            let quality = Int(arguments[1]), (1...100).contains(quality),
            let rounds = Int(arguments[2]), rounds > 0
        else { fail("usage: codec-bench encode FORMAT QUALITY ROUNDS FOLDER FILE...") }
        var recipe = Recipe(encoding: encoding, quality: quality, keepsLarger: true)
        recipe.allowedFormats = Set(EncodedImageFormat.allCases.filter(\.isMade))
        try measure(recipe, rounds, Array(arguments.dropFirst(4)), into: arguments[3])
    }

    private static func measure(
        _ recipe: Recipe, _ rounds: Int, _ files: [String], into folder: String
    ) throws {
        for path in files {
            let source = contents(of: path)
            try source.withUnsafeBytes { bytes in
                let header = try header(of: bytes)
                var (decoding, encoding) = (Duration.seconds(1 << 40), Duration.seconds(1 << 40))
                var (output, format) = (source, header.format)
                for _ in 0..<rounds {
                    let entry = try ImageProcessor.process(bytes, header: header, recipes: [recipe])
                    guard let image = try entry.results.first?.get() else { continue }
                    decoding = min(decoding, image.decodeDuration)
                    encoding = min(encoding, image.encodeDuration)
                    format = image.format
                    if case .encoded(let made) = image.output {
                        output = made.withUnsafeBytes { [UInt8]($0) }
                    }
                }
                var name = path.split(separator: "/").last.map(String.init) ?? path
                if format != header.format { name += ".\(format.fileExtension)" }
                save(output, to: "\(folder)/\(name)")
                print(
                    header.pixels, seconds(decoding), seconds(encoding), output.count,
                    name, separator: "\t")
            }
        }
    }

    private static func measurePlaceholders(_ arguments: [String]) throws {
        guard arguments.count > 1, let rounds = Int(arguments[0]), rounds > 0 else {
            fail("usage: codec-bench placeholders ROUNDS FILE...")
        }
        for path in arguments.dropFirst() {
            try contents(of: path).withUnsafeBytes { bytes in
                let header = try header(of: bytes)
                var least = [Double.infinity, .infinity]
                for round in 0..<2 * rounds {
                    let begin = clock()
                    _ = try ImageProcessor.process(
                        bytes, header: header, recipes: [Recipe()],
                        wantsPlaceholder: round % 2 == 1)
                    let seconds = Double(clock() - begin) / Double(CLOCKS_PER_SEC)
                    least[round % 2] = min(least[round % 2], seconds)
                }
                print(header.pixels, least[0], least[1], path, separator: "\t")
            }
        }
    }

    private static func measureReading(_ arguments: [String]) {
        guard arguments.count > 1, let rounds = Int(arguments[0]), rounds > 0 else {
            fail("usage: codec-bench reading ROUNDS FILE...")
        }
        let files = arguments.dropFirst().map(contents)
        guard let bench = ReadingBench(files, rounds: rounds) else {
            fail("one of the files is no PNG that is decoded")
        }
        print(bench.description)
    }

    private static func measureScales(_ arguments: [String]) {
        guard arguments.count > 1, let rounds = Int(arguments[0]), rounds > 0 else {
            fail("usage: codec-bench scales ROUNDS FILE...")
        }
        let files = arguments.dropFirst().map(contents)
        for scale: UInt32 in [1, 2, 4, 8] {
            guard let bench = ScaleBench(files, scale: scale, rounds: rounds) else {
                fail("one of the files is no JPEG that is decoded, or has other pixels")
            }
            print(bench.description)
        }
    }

    private static func measureLimit(_ arguments: [String]) throws {
        guard arguments.count > 1, let quality = Int(arguments[0]), (1...100).contains(quality)
        else { fail("usage: codec-bench limit QUALITY FILE...") }
        let files = Array(arguments.dropFirst())
        let bench = LimitBench(files, quality: quality) { contents(of: $0) }
        print(files.count, try bench.run(), separator: "\t")
    }

    private static func resample(_ arguments: [String]) {
        let usage = "usage: codec-bench resample WIDTHxHEIGHT gamma|linear ROUNDS OUTPUT FILE"
        guard arguments.count == 5, ["gamma", "linear"].contains(arguments[1]),
            let rounds = Int(arguments[2]), rounds > 0
        else { fail(usage) }
        let sides = arguments[0].split(separator: "x").compactMap { UInt32($0) }
        guard sides.count == 2, sides.allSatisfy({ (1...65535).contains($0) }) else { fail(usage) }
        guard let picture = ResampleBench(contents(of: arguments[4])) else {
            fail("\(arguments[4]): no binary PGM or PPM of 8 bits")
        }
        guard
            let made = picture.resized(
                to: (sides[0], sides[1]), isLinear: arguments[1] == "linear", rounds: rounds)
        else { fail("no memory") }
        save(made.file, to: arguments[3])
        print(picture.pixels, made.seconds, made.memoryBytes, separator: "\t")
    }

    private static func contents(of path: String) -> [UInt8] {
        guard let file = fopen(path, "rb") else { fail("\(path): cannot be read") }
        defer { fclose(file) }
        var bytes: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 1 << 20)
        while case let count = fread(&piece, 1, piece.count, file), count > 0 {
            bytes += piece[..<count]
        }
        guard ferror(file) == 0 else { fail("\(path): cannot be read") }
        return bytes
    }

    private static func save(_ bytes: [UInt8], to path: String) {
        guard let file = fopen(path, "wb"),
            fwrite(bytes, 1, bytes.count, file) == bytes.count, fclose(file) == 0
        else { fail("\(path): cannot be written") }
    }

    private static func seconds(_ duration: Duration) -> Double { duration / .seconds(1) }

    private static func fail(_ message: String) -> Never {
        // A failed write is ignored: the exit status reports the problem.
        _ = "codec-bench: \(message)\n".withBytes { write(STDERR_FILENO, $0.baseAddress, $0.count) }
        exit(64)
    }
}
