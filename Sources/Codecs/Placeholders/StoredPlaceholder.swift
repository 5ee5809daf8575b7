package import PrefetchModel

/// Makes placeholders of images without other results.
package enum StoredPlaceholder {
    /// Decodes an image, a JPEG at a fraction of its size, and makes its placeholder.
    ///
    /// Synchronous, without shared state; it allocates at most about ``memoryNeed(of:)``.
    ///
    /// - Returns: The placeholder of the picture with its orientation applied; for an animation, of
    ///   its static image.
    /// - Throws: The damage of the file; `unsupported` for a format that is not decoded.
    package static func make(
        of source: UnsafeRawBufferPointer, header: ImageHeader, limits: CodecLimits = CodecLimits()
    ) throws(CodecError) -> Placeholder {
        guard let codec = header.codec else {
            throw .unsupported("\(header.format.rawValue) is not decoded")
        }
        let image = try codec.open(source, header, limits)
        let raster = try image.raster(at: scale(of: header), Interruption(limits, nil))
        guard let placeholder = Placeholder(of: raster) else { throw .outOfMemory("no pixels") }
        return placeholder
    }

    /// Upper estimate, in bytes, for ``make(of:header:limits:)``, without the source.
    package static func memoryNeed(of header: ImageHeader) -> Int {
        let rows =
            ByteEstimate(header.heightInPixels)
            * header.stride(ByteEstimate(header.widthInPixels))
        let margin = ByteEstimate(4 << 20)
        return
            (margin + rows + 3 * ByteEstimate(header.pixels)
            + ByteEstimate(header.memory.coefficientBytes)
            + ByteEstimate(header.memory.libraryBytes)
            + ByteEstimate(header.sourceBytes)).count
    }

    /// The smallest scale at which padding in the last column does not show.
    private static func scale(of header: ImageHeader) -> DecodingScale {
        let longest = max(header.widthInPixels, header.heightInPixels)
        return DecodingScale.allCases.last { longest / $0.rawValue >= 256 } ?? .full
    }
}

extension ImageFormat {
    /// Whether there is a decoder for it, here or in workers.
    package var isDecoded: Bool { CodecLibraries.decodes(self) }
}
