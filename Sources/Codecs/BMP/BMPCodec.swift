internal import PrefetchModel

extension ImageCodec {
    /// BMP: decoded here and never encoded; `same` makes a PNG.
    static let bmp = ImageCodec(
        decoder: { "bmp/3" },
        // Across formats the result is stored at any size.
        same: .encoded(as: .png, ignoring: [.quality, .maximumBytes, .keepsLarger, .animation]),
        source: BMPSource.self)
}

/// A BMP, its headers read.
private struct BMPSource: ImageDecoding {
    let source: UnsafeRawBufferPointer
    let file: BMPFile
    let note = WarningNote()

    init(
        _ source: UnsafeRawBufferPointer, header: ImageHeader, limits: CodecLimits
    ) throws(CodecError) {
        self.source = source
        file = try BMPFile(source)
    }

    /// Decoding expands indices, so the samples are grey, RGB, or RGB and alpha.
    static func header(of source: UnsafeRawBufferPointer) throws(CodecError) -> ImageHeader {
        let file = try BMPFile(source)
        return ImageHeader(
            format: .bmp, widthInPixels: file.width, heightInPixels: file.height, bitDepth: 8,
            channels: file.hasAlpha ? 4 : 3,
            memory: DecoderMemory(hasPackedProfile: file.profileRange != nil),
            sourceBytes: source.count)
    }

    /// The file has no checksums, so its structure is checked by decoding it.
    func check(
        _ depth: CheckDepth, memoryBytes: Int, _ interruption: Interruption
    ) throws(CodecError) {
        guard depth != .ignoredByDecoder else { return }
        try BMPDecoding(source, file, note).verify(interruption)
    }

    var colours: SourceColours { SourceColours(file.profile(in: source)) }

    func raster(
        at scale: DecodingScale, _ interruption: Interruption
    ) throws(CodecError) -> Raster {
        try BMPDecoding(source, file, note).raster(interruption)
    }
}
