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
/// `codec-bench reading ROUNDS FILE...` reads PNGs to pixels, and `codec-bench scales ROUNDS
/// FILE...` decodes JPEGs at full size, 1/2, 1/4 and 1/8, in two ways each, see ``PairedBench``.
///
/// `codec-bench resample` resizes, see ``ResampleBench``. `codec-bench curves` compares formats and
/// qualities, see ``CurveBench``.
///
/// The libraries themselves (``PeerBench``) are the reference:
///
/// - `codec-bench peer-png ROUNDS FILE...` encodes at libpng's defaults, and `codec-bench peer-jpeg
///   QUALITY ROUNDS FILE...` decodes to RGB and encodes. For each file they print: pixels, CPU
///   seconds (the minimum of the rounds; for PNG of encoding alone), bytes, name.
/// - `codec-bench peer-limit FOLDER` decodes and encodes every JPEG of a folder at quality 85, and
///   decodes every PNG: the limit of other programs.
/// - `codec-bench peer-psnr QUALITY SOURCE OTHER` prints decibels against the source, of the other
///   file and of the source re-encoded from pixels at equal size.
@main
struct CodecBench {
    static func main() throws {
        let arguments = Array(CommandLine.arguments.dropFirst())
        let rest = Array(arguments.dropFirst())
        switch arguments.first {
        case "resample": resample(rest)
        case "curves":
            guard [1, 3].contains(rest.count), var bench = CurveBench(contents(of: rest[0])) else {
                fail("usage: codec-bench curves FILE [METHOD SPEED] (a binary PPM of 8 bits)")
            }
            if rest.count == 3, let method = Int32(rest[1]), let speed = Int32(rest[2]) {
                (bench.method, bench.speed) = (method, speed)
            }
            bench.run()
        case "placeholders":
            let (rounds, files) = numbered(rest, "placeholders ROUNDS FILE...")
            try measurePlaceholders(files, rounds: rounds)
        case "reading":
            let (rounds, files) = numbered(rest, "reading ROUNDS FILE...")
            measureReading(files.map(contents), rounds: rounds)
        case "scales":
            let (rounds, files) = numbered(rest, "scales ROUNDS FILE...")
            for scale: UInt32 in [1, 2, 4, 8] {
                measureScale(files.map(contents), scale, rounds: rounds)
            }
        case "limit":
            let (quality, files) = numbered(rest, "limit QUALITY FILE...", upTo: 100)
            let bench = LimitBench(files, quality: quality) { contents(of: $0) }
            print(files.count, try bench.run(), separator: "\t")
        case "encode": try encode(rest)
        case "peer-png":
            let (rounds, files) = numbered(rest, "peer-png ROUNDS FILE...")
            for path in files { measurePeerPNG(path, rounds: rounds) }
        case "peer-jpeg":
            let usage = "peer-jpeg QUALITY ROUNDS FILE..."
            let (quality, more) = numbered(rest, usage, upTo: 100)
            let (rounds, files) = numbered(more, usage)
            for path in files { measurePeerJPEG(path, quality: quality, rounds: rounds) }
        case "peer-limit":
            guard rest.count == 1 else { fail("usage: codec-bench peer-limit FOLDER") }
            measurePeerLimit(rest[0])
        case "peer-psnr":
            let (quality, files) = numbered(rest, "peer-psnr QUALITY SOURCE OTHER", upTo: 100)
            guard files.count == 2 else {
                fail("usage: codec-bench peer-psnr QUALITY SOURCE OTHER")
            }
            comparePeer(contents(of: files[0]), contents(of: files[1]), quality: quality)
        default: try encodeOwnFormat(arguments)
        }
    }

    /// A number of at least 1, and the arguments after it.
    private static func numbered(
        _ arguments: [String], _ usage: String, upTo most: Int = .max
    ) -> (number: Int, rest: [String]) {
        guard arguments.count > 1, let number = Int(arguments[0]), (1...most).contains(number)
        else { fail("usage: codec-bench \(usage)") }
        return (number, Array(arguments.dropFirst()))
    }

    private static func encodeOwnFormat(_ arguments: [String]) throws {
        guard arguments.count > 4, let effort = EncodingEffort(rawValue: arguments[0]),
            let quality = Int(arguments[1]), (1...100).contains(quality),
            let rounds = Int(arguments[2]), rounds > 0
        else { fail("usage: codec-bench EFFORT QUALITY ROUNDS FOLDER FILE...") }
        var recipe = Recipe(quality: quality, keepsLarger: true)
        recipe.effort = effort
        try measure(recipe, rounds, Array(arguments.dropFirst(4)), into: arguments[3])
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
                var name = name(of: path)
                if format != header.format { name += ".\(format.fileExtension)" }
                save(output, to: "\(folder)/\(name)")
                print(
                    header.pixels, seconds(decoding), seconds(encoding), output.count,
                    name, separator: "\t")
            }
        }
    }

    private static func measurePlaceholders(_ files: [String], rounds: Int) throws {
        for path in files {
            try contents(of: path).withUnsafeBytes { bytes in
                let header = try header(of: bytes)
                var least = [Double.infinity, .infinity]
                for round in 0..<2 * rounds {
                    let begin = clock()
                    _ = try ImageProcessor.process(
                        bytes, header: header, recipes: [Recipe()],
                        wantsPlaceholder: round % 2 == 1)
                    least[round % 2] = min(least[round % 2], secondsSince(begin))
                }
                print(header.pixels, least[0], least[1], path, separator: "\t")
            }
        }
    }

    // MARK: Peers

    private static func measurePeerPNG(_ path: String, rounds: Int) {
        let picture = PeerBench.ReadPNG(contents(of: path))
        var (least, length) = (Double.infinity, 0)
        for _ in 0..<rounds {
            let begin = clock()
            length = picture.encodedBytes()
            least = min(least, secondsSince(begin))
        }
        print(picture.width * picture.height, least, length, name(of: path), separator: "\t")
    }

    private static func measurePeerJPEG(_ path: String, quality: Int, rounds: Int) {
        let source = contents(of: path)
        var (least, pixels, length) = (Double.infinity, 0, 0)
        for _ in 0..<rounds {
            let begin = clock()
            let picture = PeerBench.decodedJPEG(source)
            length = PeerBench.encodedJPEG(picture, quality: quality).count
            least = min(least, secondsSince(begin))
            pixels = picture.width * picture.height
        }
        print(pixels, least, length, name(of: path), separator: "\t")
    }

    private static func measurePeerLimit(_ folder: String) {
        guard let directory = opendir(folder) else { fail("\(folder): cannot be read") }
        defer { closedir(directory) }
        while let entry = readdir(directory) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                String(cString: UnsafeRawPointer($0).assumingMemoryBound(to: CChar.self))
            }
            guard !name.hasPrefix(".") else { continue }
            let file = contents(of: "\(folder)/\(name)")
            if file.starts(with: [0x89, 0x50, 0x4E, 0x47]) { _ = PeerBench.ReadPNG(file) }
            if file.starts(with: [0xFF, 0xD8, 0xFF]) {
                measurePeerJPEG("\(folder)/\(name)", quality: 85, rounds: 1)
            }
        }
    }

    private static func comparePeer(_ source: [UInt8], _ other: [UInt8], quality: Int) {
        let picture = PeerBench.decodedJPEG(source)
        guard let ours = PeerBench.decibels(picture, PeerBench.decodedJPEG(other)) else {
            fail("pictures of different sizes")
        }
        let theirs = PeerBench.decibels(picture, atBytes: Double(other.count), quality: quality)
        print(ours, theirs, separator: "\t")
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

    private static func name(of path: String) -> String {
        path.split(separator: "/").last.map(String.init) ?? path
    }

    /// The CPU seconds of the process since a reading of `clock`.
    private static func secondsSince(_ begin: clock_t) -> Double {
        Double(clock() - begin) / Double(CLOCKS_PER_SEC)
    }

    private static func seconds(_ duration: Duration) -> Double { duration / .seconds(1) }

    static func fail(_ message: String) -> Never {
        // A failed write is ignored: the exit status reports the problem.
        _ = "codec-bench: \(message)\n".withBytes { write(STDERR_FILENO, $0.baseAddress, $0.count) }
        exit(64)
    }
}
