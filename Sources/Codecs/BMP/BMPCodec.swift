internal import PrefetchModel

extension ImageCodec {
    /// BMP: decoded here and never encoded; `same` makes a PNG.
    static let bmp = ImageCodec(
        decoder: "bmp/2",
        // Across formats the result is stored at any size.
        same: .encoded(as: .png, ignoring: [.quality, .maximumBytes, .keepsLarger, .animation]),
        recognition: BMPFile.recognition, open: BMPSource.init)
}

extension BMPFile {
    /// Two letters alone begin many a text, so the header's size must be a known one too.
    fileprivate static func recognition(of bytes: UnsafeRawBufferPointer) -> Recognition {
        Recognition(of: bytes, by: Array("BM".utf8) + unknown(16)).confirmed(
            [12, 16, 40, 52, 56, 64, 108, 124].contains(bytes.littleEndian32(at: 14)))
    }
}

/// A BMP, its headers read.
private struct BMPSource: ImageDecoding, WarningNoting {
    let source: UnsafeRawBufferPointer
    let limits: CodecLimits
    let file: BMPFile
    let note = WarningNote()

    init(
        _ source: UnsafeRawBufferPointer, header: ImageHeader, limits: CodecLimits
    ) throws(CodecError) {
        self.source = source
        self.limits = limits
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

    var colours: SourceColours { SourceColours(file.profile(in: source, limits: limits)) }

    func raster(
        _ request: RasterRequest, _ interruption: Interruption
    ) throws(CodecError) -> Raster {
        let begin = ThreadClock.now
        var raster = try BMPDecoding(source, file, note).raster(interruption)
        raster.decodeDuration = ThreadClock.now - begin
        return try raster.formed(as: request.form, interruption)
    }
}
