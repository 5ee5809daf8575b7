import CCrypto
import CodecFuzzing
import Codecs
import Foundation
import PrefetchModel
import Testing

/// Folders of the source tree, found by the place of this file.
enum SourceTree {
    static let root = URL(filePath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    static let tests = root.appending(path: "Tests")
}

/// Optional shared test images.
enum TestData {
    static let root: URL = {
        if let path = ProcessInfo.processInfo.environment["PREFETCH_SHARED_DATA"] {
            return URL(filePath: path)
        }
        return SourceTree.root.appending(path: "../shared/data").standardizedFileURL
    }()

    static var isAvailable: Bool {
        FileManager.default.fileExists(atPath: root.appending(path: "EXPECT.tsv").path)
    }

    /// Whether the tests are built with a sanitizer, as told by `Scripts/check`.
    static let hasSanitizer = ProcessInfo.processInfo.environment["PREFETCH_SANITIZER"] != nil

    /// The verdicts of two other decoders on an image; the columns are described in `SOURCES.md`.
    struct Expectation: CustomStringConvertible {
        let path: String
        /// The format by signature: `png`, `jpeg`, `gif`, …, `unknown`.
        let magic: String
        let pillow: String
        let systemLibrary: String
        let mode: String
        /// 0 if the image was rejected, like the next ones.
        let width: Int
        let height: Int
        /// 0 if the image was rejected.
        let frames: Int
        let rgbaDigest: String

        var description: String { path }
        var isAcceptedByBoth: Bool { pillow == "ok" && systemLibrary == "ok" }
        var isRefusedByBoth: Bool { pillow == "error" && systemLibrary == "error" }
    }

    static func expectations(in folder: String) throws -> [Expectation] {
        let text = try String(contentsOf: root.appending(path: "EXPECT.tsv"), encoding: .utf8)
        return text.split(separator: "\n").dropFirst().compactMap { line in
            let fields = line.split(separator: "\t", omittingEmptySubsequences: false)
            guard fields.count >= 11, folder.isEmpty || fields[0].hasPrefix(folder + "/"),
                fields[0] != "path"
            else { return nil }
            return Expectation(
                path: String(fields[0]), magic: String(fields[2]), pillow: String(fields[3]),
                systemLibrary: String(fields[10]), mode: String(fields[6]),
                width: Int(fields[4]) ?? 0, height: Int(fields[5]) ?? 0,
                frames: Int(fields[7]) ?? 0, rgbaDigest: String(fields[9]))
        }
    }

    static func bytes(_ path: String) throws -> [UInt8] {
        [UInt8](try Data(contentsOf: root.appending(path: path)))
    }

    static func paths(in folder: String) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: root.appending(path: folder).path)
            .sorted().map { "\(folder)/\($0)" }
    }
}

/// The first 32 hexadecimal digits of the SHA-256.
func shortDigest(_ bytes: [UInt8]) -> String {
    var digest = [UInt8](repeating: 0, count: 32)
    SHA256(bytes, bytes.count, &digest)
    return digest.prefix(16).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
}

/// A stored image with its bytes.
struct Stored {
    let image: ProcessedImage
    let bytes: [UInt8]

    var isSource: Bool {
        if case .source = image.output { return true }
        return false
    }
}

/// Processes a source; `effort` overrides the recipe's.
func stored(
    _ source: [UInt8], _ recipe: Recipe = Recipe(), effort: EncodingEffort? = nil,
    limits: CodecLimits = CodecLimits()
) throws(CodecError) -> Stored {
    var recipe = recipe
    recipe.effort = effort ?? recipe.effort
    // The standard library's `withUnsafeBytes` rethrows without the error's type.
    let outcome = source.withUnsafeBytes { bytes in
        Result { () throws(CodecError) in
            try process(
                bytes, header: header(of: bytes, limits: limits), recipe: recipe, limits: limits)
        }
    }
    let image = try outcome.get()
    return switch image.output {
    case .source: Stored(image: image, bytes: source)
    case .encoded(let made): Stored(image: image, bytes: made.withUnsafeBytes { [UInt8]($0) })
    }
}

/// The warning about an accepted source.
func warning(_ source: [UInt8], _ recipe: Recipe = Recipe()) throws -> ImageWarning? {
    try source.withUnsafeBytes { bytes in
        let entry = try ImageProcessor.process(bytes, header: header(of: bytes), recipes: [recipe])
        _ = try entry.results[0].get()
        return entry.warning
    }
}

/// The error of a rejected image; nil for an accepted one.
func refusal(
    _ source: [UInt8], _ recipe: Recipe = Recipe(), limits: CodecLimits = CodecLimits()
) -> CodecError? {
    do throws(CodecError) {
        _ = try stored(source, recipe, limits: limits)
        return nil
    } catch {
        return error
    }
}

/// The error of an image that is rejected without decoding, with memory for all rows and for hardly
/// any.
func structureRefusal(
    _ source: [UInt8], limits: CodecLimits = CodecLimits()
) -> CodecError? {
    let errors = [Int.max, 0].map { memory in
        source.withUnsafeBytes { bytes -> CodecError? in
            do throws(CodecError) {
                _ = try checkedStructure(
                    of: bytes, header: header(of: bytes, limits: limits), limits: limits,
                    memoryBytes: memory)
                return nil
            } catch {
                return error
            }
        }
    }
    #expect(errors[0] == errors[1])
    return errors[0]
}

func imageHeader(
    _ source: [UInt8], limits: CodecLimits = CodecLimits()
) throws -> ImageHeader {
    try source.withUnsafeBytes { try header(of: $0, limits: limits) }
}

let everyRecipe = [
    Recipe(encoding: .same), Recipe(encoding: .jpeg), Recipe(encoding: .png),
    Recipe(encoding: .original),
]
