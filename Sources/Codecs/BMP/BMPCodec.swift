internal import PrefetchModel

/// BMP: decoded here, and never encoded. It becomes PNG where it is to stay what it is.
enum BMPCodec: ImageCodec {
    static let decoder = "bmp/1"
    static let same = EncodedFormat.png

    /// Two letters alone begin many a text, so the header's size must be one that exists too.
    static func isAnnounced(by bytes: UnsafeRawBufferPointer) -> Bool {
        guard bytes.count >= 18, bytes.holds("BM", at: 0) else { return false }
        return [12, 16, 40, 52, 56, 64, 108, 124].contains(bytes.littleEndian32(at: 14))
    }

    /// Indices are expanded as they are decoded, so the samples are those of grey, RGB, or RGB and alpha.
    static func header(of source: UnsafeRawBufferPointer) throws(CodecError) -> ImageHeader {
        let file = try BMPFile(source)
        return ImageHeader(
            format: .bmp, widthInPixels: file.width, heightInPixels: file.height, bitDepth: 8,
            isProgressiveOrInterlaced: false, orientation: ExifOrientation.upright,
            channels: file.hasAlpha ? 4 : 3, coefficientBytes: 0, sourceBytes: source.count,
            hasPackedProfile: file.profileRange != nil)
    }

    static func memory(of header: ImageHeader, for recipe: Recipe) -> MemoryEstimate {
        EstimateBasis(header, recipe).ofDecoded
    }

    /// Nothing is kept, whether there are runs to follow or not.
    static func structureMemoryBytes(of header: ImageHeader, within budget: Int) -> Int { 0 }

    static func source(
        _ source: UnsafeRawBufferPointer, header: ImageHeader, limits: CodecLimits
    ) throws(CodecError) -> any ImageSource {
        BMPSource(source: source, header: header, limits: limits, file: try BMPFile(source))
    }
}

/// A BMP of which the headers were read.
private struct BMPSource: ImageSource {
    let source: UnsafeRawBufferPointer
    let header: ImageHeader
    let limits: CodecLimits
    let file: BMPFile

    func way(to format: EncodedFormat, by recipe: Recipe) throws(CodecError) -> CodecWay {
        try format.way(from: header, by: recipe)
    }

    /// Without checksums there is nothing else to look at than to decoding.
    func checkStructure(memoryBytes: Int, _ interruption: Interruption) throws(CodecError) {
        try BMPDecoding(source, file).verify(interruption)
    }

    func verify(_ interruption: Interruption) throws(CodecError) -> Duration {
        let begin = ThreadClock.now
        try BMPDecoding(source, file).verify(interruption)
        return ThreadClock.now - begin
    }

    func raster(
        _ request: RasterRequest, _ interruption: Interruption
    ) throws(CodecError) -> Raster {
        let begin = ThreadClock.now
        let rows = try BMPDecoding(source, file).rows(interruption)
        let profile = request.takesProfile ? file.profile(in: source, limits: limits) : nil
        let raster = Raster(
            owning: rows, colour: ColourDescription(profile: profile),
            decodeDuration: ThreadClock.now - begin)
        return try raster.formed(as: request.form, interruption)
    }
}
