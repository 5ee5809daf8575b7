internal import Codecs
internal import Hashing
package import PrefetchModel

/// The files of `overlay` steps, each decoded once.
package struct OverlayFiles: Sendable {
    /// Why a file cannot be used, without its name.
    package struct Refusal: Error {
        package let message: String
    }

    package static let mostBytes = 64 << 20

    private(set) var overlays = Overlays()

    package init() {}

    /// Decodes a file.
    ///
    /// - Returns: The digest, which identifies it in recipes.
    package mutating func add(_ bytes: [UInt8]) throws(Refusal) -> ContentDigest {
        guard bytes.count <= OverlayFiles.mostBytes else {
            throw Refusal(message: "larger than \(ByteCount(OverlayFiles.mostBytes))")
        }
        let digest = bytes.withUnsafeBytes { SHA256Hasher().digest(of: $0) }
        do throws(CodecError) {
            // The standard library's `withUnsafeBytes` rethrows without the error's type.
            let result = bytes.withUnsafeBytes { bytes in
                Result { () throws(CodecError) in try overlays.add(bytes, digest) }
            }
            try result.get()
        } catch .tooManyPixels {
            throw Refusal(message: "more than \(Overlays.maximumPixels) pixels")
        } catch {
            throw Refusal(message: error.description)
        }
        return digest
    }
}
