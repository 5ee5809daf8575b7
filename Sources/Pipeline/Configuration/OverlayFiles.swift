internal import Codecs
internal import Hashing
package import PrefetchModel

/// The files of `overlay` steps, each decoded once.
package struct OverlayFiles: Sendable {
    package static let mostBytes = 64 << 20

    private(set) var overlays = Overlays()

    package init() {}

    /// Decodes a file.
    ///
    /// - Returns: The digest, which identifies it in recipes.
    /// - Throws: The reason that it cannot be used, without the file's name.
    package mutating func add(_ bytes: [UInt8]) throws(UserError) -> ContentDigest {
        guard bytes.count <= OverlayFiles.mostBytes else {
            throw UserError("larger than \(ByteCount(OverlayFiles.mostBytes))")
        }
        let digest = bytes.withUnsafeBytes { SHA256Hasher().digest(of: $0) }
        do {
            try bytes.withUnsafeBytes { try overlays.add($0, digest) }
        } catch CodecError.tooManyPixels {
            throw UserError("more than \(Overlays.maximumPixels) pixels")
        } catch {
            throw UserError("\(error)")
        }
        return digest
    }
}
