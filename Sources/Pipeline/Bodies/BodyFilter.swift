internal import Hashing
package import PrefetchModel

/// A filter that turns a response's body into an image before anything is judged.
///
/// A command reads a body on its standard input, writes the image to its standard output, and exits
/// with 0. One that speaks frames serves many bodies: each is preceded by its length, 4 bytes in
/// network order, and so is each answer, in the same order. The length 0xFFFFFFFF as an answer
/// means that the body has no image.
package enum BodyFilter: Hashable, Sendable {
    /// Base64 (RFC 4648), also of `data:` URLs.
    case base64
    case command(String, speaksFrames: Bool)

    private static let frames = "frames:"

    /// Parses `base64`, `CMD` for the shell, or `frames:CMD`; nil for an empty command.
    package init?(_ text: String) {
        let speaksFrames = text.hasPrefix(BodyFilter.frames)
        let command = speaksFrames ? String(text.dropFirst(BodyFilter.frames.count)) : text
        guard !command.allSatisfy(\.isWhitespace) else { return nil }
        self =
            text == BodyFilterName.base64.description
            ? .base64 : .command(command, speaksFrames: speaksFrames)
    }

    package var name: BodyFilterName {
        switch self {
        case .base64: return .base64
        case .command(let command, speaksFrames: _):
            let digest = SHA256Hasher().digest(of: command).description
            guard let name = BodyFilterName("command-" + digest.prefix(16)) else {
                preconditionFailure("a digest is made of digits and letters")
            }
            return name
        }
    }
}
