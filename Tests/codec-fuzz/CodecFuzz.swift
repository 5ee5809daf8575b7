import CLibFuzzer
import CodecFuzzing
import Codecs
import Glibc
import PrefetchModel

/// The codecs' fuzzers, for `Scripts/fuzz` and `Scripts/check corpus`: `codec-fuzz --target=NAME
/// [ARGUMENT OF libFuzzer]...`.
///
/// Each target processes an input by a recipe derived from its bytes; the first ones by several at
/// once:
///
/// - `jpeg`: JPEG bytes to stored bytes;
/// - `png`: PNG bytes to stored bytes;
/// - `reading`: PNG bytes, unpacked at once and row by row, by ``PNGReading``;
/// - `bmp`, `webp`, `gif`, `avif`, `ico`: bytes of that format to stored bytes;
/// - `differential`: JPEG or PNG to PNG, with the library's own verdict as the reference;
/// - `transcoder`: JPEG, rewritten by symbols and by libjpeg's coefficients, by
///   ``TranscoderInvariants``;
/// - `scales`: JPEG, decoded at fractions of its size by our decoder and by libjpeg, by
///   ``ScaleInvariants``;
/// - `steps`: any decoded format, with transformations, by ``StepInvariants``;
/// - `profiles`: an ICC profile in small JPEGs, by ``ProfileInvariants``;
/// - `containers`: formats parsed without decoding, in this build or another, by
///   ``ContainerInvariants``.
///
/// `codec-fuzz --seeds=FOLDER` writes the smallest files that have a container.
///
/// `corpus` processes each file by the sample recipes, under the program's limits, and compares
/// verdicts. A broken invariant ends the process.
@main
enum CodecFuzz {
    static func main() {
        if let folder = CommandLine.arguments.dropFirst().first, folder.hasPrefix("--seeds=") {
            return writeSeeds(String(folder.dropFirst(8)))
        }
        var count = CommandLine.argc
        var arguments = CommandLine.unsafeArgv
        exit(
            LLVMFuzzerRunDriver(&count, &arguments) { bytes, count in
                target.run(UnsafeRawBufferPointer(start: bytes, count: count)) ? 0 : -1
            })
    }

    private static func writeSeeds(_ folder: String) {
        for (number, file) in HandmadeContainer.all.enumerated() {
            let path = "\(folder)/handmade-\(number)"
            let stream = fopen(path, "w")
            let count = stream.map { fwrite(file.bytes, 1, file.bytes.count, $0) }
            guard let stream, fclose(stream) == 0, count == file.bytes.count else {
                perror("codec-fuzz: \(path)")
                exit(1)
            }
        }
    }
}

private enum Target: String {
    case jpeg
    case png
    case reading
    case bmp
    case webp
    case gif
    case avif
    case ico
    case differential
    case transcoder
    case scales
    case containers
    case profiles
    case steps
    case corpus

    /// Small, so that many inputs run in a second.
    private static let fuzzingLimits: CodecLimits = {
        var limits = CodecLimits(maximumPixels: 1 << 16, maximumTime: .seconds(2))
        limits.maximumLibraryBytes = 256 << 20
        return limits
    }()

    /// At effort `small` the corpus's 33 megapixels would take minutes.
    private static let smallPixels = 1 << 20

    /// The possible output formats; lossy ones are slow to make.
    private static let encodings: [Recipe.Encoding] =
        [.same, .same, .jpeg, .png]
        + [(.webp, .webp), (.avif, .avif), (.webp, .auto)].compactMap {
            (format: EncodedImageFormat, encoding: Recipe.Encoding) in
            format.isMade ? encoding : nil
        }

    /// - Returns: whether the input belongs in the target's corpus.
    func run(_ bytes: UnsafeRawBufferPointer) -> Bool {
        if self == .profiles { return runProfiles(bytes) }
        let format = sniffed(bytes)
        let isWanted =
            switch self {
            case .jpeg, .transcoder, .scales: format == .jpeg
            case .png, .reading: format == .png
            case .bmp: format == .bmp
            case .webp: format == .webp
            case .gif: format == .gif
            case .avif: format == .avif
            case .ico: format == .icon
            case .differential: format == .jpeg || format == .png
            case .containers: format != nil
            case .profiles: true
            case .steps: [.jpeg, .png, .bmp, .webp, .gif, .avif, .icon].contains(format)
            case .corpus: format == .jpeg || format == .png || format == .bmp
            }
        guard isWanted else { return false }
        if self == .containers { return runContainers(bytes) }
        if self == .steps { return runSteps(bytes) }
        if self == .transcoder { return runTranscoder(bytes) }
        if self == .scales { return runScales(bytes) }
        if self == .reading { return runReading(bytes, maximumPixels: 1 << 16, maximumWarnings: 3) }
        if self == .corpus, format == .png {
            let limits = CodecLimits()
            _ = runReading(
                bytes, maximumPixels: limits.maximumPixels, maximumWarnings: limits.maximumWarnings)
        }
        do throws(CodecInvariants.Violation) {
            guard
                let invariants = try CodecInvariants(
                    bytes, limits: self == .corpus ? CodecLimits() : Target.fuzzingLimits)
            else { return true }
            switch self {
            case .jpeg, .png, .bmp, .webp, .gif, .avif, .ico:
                let recipe = Recipe(hashing: bytes, encodings: Target.encodings)
                try invariants.check(recipe)
                var other = recipe
                other.quality = 45
                other.stripping = .safe
                try invariants.checkTogether([
                    recipe, other, Recipe(encoding: .original), Recipe(encoding: .png),
                ])
            case .containers, .profiles, .reading, .steps, .transcoder, .scales: return true
            case .differential:
                try invariants.checkReferenceIsTaken()
                try invariants.check(Recipe(hashing: bytes, encodings: [.png]))
            case .corpus:
                try invariants.checkReferenceIsTaken()
                for recipe in Recipe.samples
                where recipe.effort != .small || invariants.pixels <= Target.smallPixels {
                    try invariants.check(recipe)
                }
            }
        } catch {
            fatalError("\(error)")
        }
        return true
    }

    private func runReading(
        _ bytes: UnsafeRawBufferPointer, maximumPixels: Int, maximumWarnings: Int
    ) -> Bool {
        do throws(PNGReading.Difference) {
            try PNGReading.check(
                bytes, maximumPixels: maximumPixels, maximumWarnings: maximumWarnings)
        } catch {
            fatalError("\(error)")
        }
        return true
    }

    private func runTranscoder(_ bytes: UnsafeRawBufferPointer) -> Bool {
        // Derived from the length, which changes of single bytes do not affect.
        let quality = [85, 40, 70, 95][bytes.count % 4]
        do throws(TranscoderInvariants.Violation) {
            try TranscoderInvariants.check(
                bytes, quality: quality, maximumPixels: Target.fuzzingLimits.maximumPixels,
                hasPreview: bytes.count % 3 == 0)
            return true
        } catch {
            fatalError("\(error)")
        }
    }

    private func runScales(_ bytes: UnsafeRawBufferPointer) -> Bool {
        do throws(ScaleInvariants.Violation) {
            try ScaleInvariants.check(
                bytes, maximumPixels: Target.fuzzingLimits.maximumPixels)
            return true
        } catch {
            fatalError("\(error)")
        }
    }

    private func runSteps(_ bytes: UnsafeRawBufferPointer) -> Bool {
        do throws(CodecInvariants.Violation) {
            return try StepInvariants.check(
                bytes, encodings: Target.encodings, limits: Target.fuzzingLimits)
        } catch {
            fatalError("\(error)")
        }
    }

    private func runProfiles(_ bytes: UnsafeRawBufferPointer) -> Bool {
        do throws(ProfileInvariants.Violation) {
            try ProfileInvariants.check(Array(bytes))
            return true
        } catch {
            fatalError("\(error)")
        }
    }

    private func runContainers(_ bytes: UnsafeRawBufferPointer) -> Bool {
        do throws(ContainerInvariants.Violation) {
            return try ContainerInvariants.check(bytes, limits: Target.fuzzingLimits)
        } catch {
            fatalError("\(error)")
        }
    }
}

/// Read once, from the only argument that libFuzzer ignores.
private let target: Target = {
    for argument in CommandLine.arguments where argument.hasPrefix("--target=") {
        if let target = Target(rawValue: String(argument.dropFirst(9))) { return target }
    }
    let text =
        "codec-fuzz: --target=NAME: it is jpeg, png, reading, bmp, webp, gif, avif, ico, differential, transcoder, scales, containers, profiles or corpus\n"
    write(STDERR_FILENO, text, text.utf8.count)
    exit(64)
}()

/// libFuzzer looks this up by name. Every eighth input is changed regardless of its format.
@_cdecl("LLVMFuzzerCustomMutator")
public func mutateInput(
    _ bytes: UnsafeMutablePointer<UInt8>, _ count: Int, _ maximum: Int, _ seed: UInt32
) -> Int {
    let source = UnsafeRawBufferPointer(start: bytes, count: count)
    if seed % 8 != 0, sniffed(source) == .png {
        var mutation = PNGMutation(seed: UInt64(seed)) { data, maximum in
            let count = data.count
            data += [UInt8](repeating: 0, count: max(maximum - count, 0))
            let changed = data.withUnsafeMutableBufferPointer { buffer in
                buffer.baseAddress.map { LLVMFuzzerMutate($0, count, buffer.count) } ?? 0
            }
            data.removeLast(data.count - min(changed, data.count))
        }
        if let result = mutation.mutated(source, maximumBytes: maximum) {
            UnsafeMutableRawBufferPointer(start: bytes, count: maximum).copyBytes(from: result)
            return result.count
        }
    }
    return LLVMFuzzerMutate(bytes, count, maximum)
}
