import Pipeline
import PrefetchModel
import Threading

/// The files that `overlay=` names. Each is read once, because flags are parsed several times and
/// every parse must see the same content.
enum OverlayArguments {
    private struct State {
        var digests: [String: ContentDigest] = [:]
        var decoded = OverlayFiles()
    }

    private static let state = Monitor(State())

    static var decoded: OverlayFiles { state.withLock { $0.decoded } }
    static var paths: [String] { state.withLock { $0.digests.keys.map(path) } }

    /// A name like `-` is never standard input.
    private static func path(_ file: String) -> String { file == "-" ? "./-" : file }

    /// Reads and decodes a file.
    ///
    /// - Returns: its digest.
    /// - Throws: a problem that names the file.
    static func read(_ file: String) throws(UserError) -> ContentDigest {
        try state.withLock { state throws(UserError) in
            if let digest = state.digests[file] { return digest }
            func problem(_ message: String) -> UserError {
                UserError(.usage, "overlay=\(file): \(message)")
            }
            let bytes: [UInt8]
            do throws(UserError) {
                bytes = try InputFile(path(file)).read(limit: OverlayFiles.mostBytes + 1)
            } catch {
                throw problem(error.message)
            }
            let digest: ContentDigest
            do throws(OverlayFiles.Refusal) {
                digest = try state.decoded.add(bytes)
            } catch {
                throw problem(error.message)
            }
            state.digests[file] = digest
            return digest
        }
    }
}
