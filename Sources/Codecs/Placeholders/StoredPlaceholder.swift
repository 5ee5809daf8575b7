package import PrefetchModel

/// Placeholders of images of which nothing else is made.
package enum StoredPlaceholder {
    /// Decodes an image as far as it takes, a JPEG at a fraction of its size, and makes its placeholder.
    ///
    /// Synchronous, without shared state; it allocates at most about ``memoryNeed(of:)``.
    ///
    /// - Parameters:
    ///   - source: the whole file.
    ///   - header: of the same bytes.
    ///   - limits: what it may take.
    /// - Returns: the placeholder of the upright picture; of an animation that of its static image.
    /// - Throws: what is wrong with the file; `unsupported` for a format that is not decoded.
    package static func make(
        of source: UnsafeRawBufferPointer, header: ImageHeader, limits: CodecLimits = CodecLimits()
    ) throws(CodecError) -> Placeholder {
        guard let codec = header.format.codec else {
            throw .unsupported("\(header.format.rawValue) is not decoded")
        }
        let image = try codec.open(source, header, limits)
        let raster = try image.raster(
            RasterRequest(form: .native, takesProfile: false, scale: scale(of: header)),
            Interruption(limits, nil))
        guard let placeholder = Placeholder(of: raster) else { throw .outOfMemory("no pixels") }
        return placeholder
    }

    /// An upper estimate of the bytes that ``make(of:header:limits:)`` allocates, the source not counted.
    package static func memoryNeed(of header: ImageHeader) -> Int {
        let rows =
            ByteEstimate(header.heightInPixels)
            * header.stride(ByteEstimate(header.widthInPixels))
        let margin = ByteEstimate(4 << 20)
        return
            (margin + rows + 3 * ByteEstimate(header.pixels)
            + ByteEstimate(header.coefficientBytes) + ByteEstimate(header.libraryBytes)
            + ByteEstimate(header.sourceBytes)).count
    }

    /// One that leaves so many pixels that the part of the last column that is beyond the picture does not show.
    private static func scale(of header: ImageHeader) -> DecodingScale {
        let longest = max(header.widthInPixels, header.heightInPixels)
        return DecodingScale.allCases.last { longest / $0.rawValue >= 256 } ?? .full
    }
}

extension ImageFormat {
    /// Whether there is a decoder for it.
    package var isDecoded: Bool { codec != nil }
}
