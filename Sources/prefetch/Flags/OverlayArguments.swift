import Pipeline
import PrefetchModel

/// The files that `overlay=` names. Each is read once, since it may be a pipe.
struct OverlayArguments: Sendable {
    private var digests: [String: ContentDigest] = [:]
    private(set) var decoded = OverlayFiles()

    var paths: [String] { digests.keys.map(OverlayArguments.path) }

    /// A name like `-` is never standard input.
    private static func path(_ file: String) -> String { file == "-" ? "./-" : file }

    /// Reads and decodes a file.
    ///
    /// - Returns: its digest.
    /// - Throws: a problem that names the file.
    mutating func read(_ file: String) throws(UserError) -> ContentDigest {
        if let digest = digests[file] { return digest }
        func problem(_ message: String) -> UserError {
            UserError(.usage, "overlay=\(file): \(message)")
        }
        let bytes: [UInt8]
        do throws(UserError) {
            bytes = try InputFile(OverlayArguments.path(file)).read(
                limit: OverlayFiles.mostBytes + 1)
        } catch {
            throw problem(error.message)
        }
        let digest: ContentDigest
        do throws(UserError) {
            digest = try decoded.add(bytes)
        } catch {
            throw problem(error.message)
        }
        digests[file] = digest
        return digest
    }
}
