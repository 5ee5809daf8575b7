internal import CPNG
internal import PrefetchModel

/// Rewrites a PNG as a smaller PNG with the same pixels, and with metadata that only PNG has. The
/// frames of an animation are copied.
struct PNGRewriting {
    let png: PNGSource
    let recipe: Recipe
    let interruption: Interruption
    private var source: UnsafeRawBufferPointer { png.source }
    private var file: PNGFile { png.file }
    private var header: ImageHeader { png.header }

    /// Returns the source without malformed chunks, or an animation without its metadata.
    func passedThrough() throws(CodecError) -> ProcessedImage {
        // For an animation, only the memory for its own data was reserved.
        let start = ThreadClock.now
        let hasTransparency = try png.verified(
            wholeBytes: file.animation == nil ? .max : 0, interruption)
        let begin = ThreadClock.now
        let metadata = metadata(hasTransparency, isUpright: false)
        let pieces = file.stripped(metadata, stripping: recipe.stripping)
        return ProcessedImage(
            keeping: header, as: try .init(joining: pieces, of: source),
            decodeDuration: begin - start, encodeDuration: ThreadClock.now - begin)
    }

    /// Returns the same pixels with the orientation applied and without interlacing, or the
    /// source's own data if that is smaller. Colour type and bit depth are minimal unless all
    /// metadata is kept.
    func rewritten(_ raster: consuming Raster) throws(CodecError) -> ProcessedImage {
        let begin = ThreadClock.now
        var raster = raster
        let hasTransparency = raster.rows.has_transparency
        let isTurned = file.orientation != ExifOrientation.upright && recipe.stripping != .none
        if isTurned { try raster.turn(interruption) }
        let metadata = metadata(hasTransparency, isUpright: isTurned)
        // The source's own data keeps its orientation tag.
        let stripped = file.stripped(
            isTurned ? self.metadata(hasTransparency, isUpright: false) : metadata,
            stripping: recipe.stripping)
        let encoding = PNGEncoding(
            effort: recipe.effort, changesKind: recipe.stripping != .none,
            interruption: interruption)
        let encoded = try encoding.encoded(
            &raster.rows, chunks: metadata.leading.bytes(of: source),
            // Unended data has good pixels, but is not kept.
            maximumBytes: recipe.keepsLarger || raster.rows.is_unusual
                ? .max / 4 : stripped.byteCount - metadata.trailing.byteCount)
        let output: ProcessedImage.Output =
            if let encoded {
                .init(try adding(metadata.trailing, to: encoded), from: source)
            } else {
                try .init(joining: stripped, of: source)
            }
        let (width, height) = header.displayedSize
        return ProcessedImage(
            output: output, format: .png, widthInPixels: width, heightInPixels: height,
            orientation: isTurned && encoded != nil ? ExifOrientation.upright : file.orientation,
            encodeDuration: ThreadClock.now - begin)
    }

    private func metadata(_ hasTransparency: Bool, isUpright: Bool) -> PNGFile.Metadata {
        let metadata = file.metadata(
            hasTransparency: hasTransparency, stripping: recipe.stripping, isUpright: isUpright)
        let names = metadata.malformed.sorted().map { PNGFile.name(file.chunks[$0].type) }
        png.note.noteMalformed(names, "chunk")
        return metadata
    }

    /// Inserts chunks between the image data and the end.
    private func adding(
        _ chunks: [ImagePiece], to encoded: ImageBytes
    ) throws(CodecError) -> ImageBytes {
        guard !chunks.isEmpty else { return encoded }
        let trailing = chunks.bytes(of: source)
        let end = encoded.count - PNGFile.endBytes
        let pieces: [ImagePiece] = [
            .source(0..<end), .made(trailing), .source(end..<encoded.count),
        ]
        return try encoded.withUnsafeBytes { (encoded) throws(CodecError) in
            try ImageBytes(joining: pieces, of: encoded)
        }
    }
}
