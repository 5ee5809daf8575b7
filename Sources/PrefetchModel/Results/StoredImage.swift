/// A stored variant, as reports and `get` describe it.
package struct StoredImage: Hashable, Sendable {
    package let digest: ContentDigest
    package let format: ImageFormat
    /// False for source bytes in a format that is not decoded.
    package let isDecoded: Bool
    /// As displayed, with the orientation applied; 0 where neither width nor height is known.
    package let widthInPixels: Int
    package let heightInPixels: Int
    /// The EXIF orientation, 1…8, which the bytes leave to readers.
    package let orientation: Int
    package let size: ByteCount
    /// Known only where the image was encoded; not stored.
    package let colour: ColourTreatment?

    package init(
        digest: ContentDigest, format: ImageFormat, isDecoded: Bool = true, widthInPixels: Int,
        heightInPixels: Int, orientation: Int = 1, size: ByteCount, colour: ColourTreatment? = nil
    ) {
        self.digest = digest
        self.format = format
        self.isDecoded = isDecoded
        self.widthInPixels = widthInPixels
        self.heightInPixels = heightInPixels
        self.orientation = orientation
        self.size = size
        self.colour = colour
    }

    package var knownWidth: Int? { widthInPixels > 0 ? widthInPixels : nil }
    package var knownHeight: Int? { heightInPixels > 0 ? heightInPixels : nil }

    /// Nil if readers display the rows as they are.
    package var remainingOrientation: Int? { orientation > 1 ? orientation : nil }

    /// Relative to the cache directory: `content/ab/<64 hexadecimal digits>.<extension>`.
    package var relativePath: String { StoredImage.relativePath(of: digest, format) }

    package static func relativePath(of digest: ContentDigest, _ format: ImageFormat) -> String {
        // Appended, which is quicker than an interpolation: exports need many.
        let name = digest.description
        var path = "content/"
        path.reserveCapacity(88)
        path += name.prefix(2)
        path += "/"
        path += name
        path += "."
        path += format.fileExtension
        return path
    }
}

package enum ColourTreatment: String, Sendable {
    /// Stored as the source declares them.
    case kept
    case converted
    /// Converted to sRGB from a high dynamic range, by a map of its light.
    case toneMapped = "tone-mapped"
    /// The source declares none, or what it declares was stripped without a conversion.
    case assumedSRGB = "assumed-srgb"
}
