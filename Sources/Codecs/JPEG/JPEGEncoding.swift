internal import CJPEG
internal import CPNG
internal import PrefetchModel

extension ImageEncoder {
    static let jpeg = ImageEncoder(
        // libjpeg's limit (`JPEG_MAX_DIMENSION`).
        sideLimit: SideLimit(subject: "a JPEG", pixels: 65500), hasAlpha: false,
        room: JPEGFile.room, estimate: JPEGEncoding.memory, encode: JPEGEncoding.encoded)
}

enum JPEGEncoding {
    /// The largest picture that may be stored as 4:4:4.
    static let mostPixelsOfWholeChroma = 16_000_000

    /// Grey or RGB rows with, in turn, the rows before alpha was removed, turned rows, or the
    /// library's coefficients and outputs.
    static func memory(_ basis: EstimateBasis) -> MemoryEstimate {
        let made = working(basis)
        let copied = basis.isMadeOpaque ? basis.rows + basis.opaque : basis.rows
        let turned = basis.isTurned ? 2 * basis.opaque : 0
        return MemoryEstimate(
            peak: basis.margin + max(max(copied, turned), basis.opaque + made.peak),
            result: made.result, raster: basis.opaque)
    }

    /// All coefficients, two bytes each, and the output in a buffer that doubles: noise takes 1.4
    /// bytes a pixel at quality 85 and 2.9 at 100, half as many with halved chroma.
    static func working(_ basis: EstimateBasis) -> MemoryEstimate {
        let blocks = (basis.width + 16) * (basis.height + 16)
        let hundredths: ByteEstimate =
            switch basis.recipe.quality {
            case ...85: 25
            case ...95: 37
            default: 50
            }
        let halves: ByteEstimate =
            basis.header.plainChannels < 3
            ? 2 : basis.pixels > ByteEstimate(mostPixelsOfWholeChroma) ? 3 : 6
        // Luma has more of the data than of the samples.
        let jpeg = max(halves, 3) * basis.pixels * hundredths / 100 + ByteEstimate(64 << 10)
        return MemoryEstimate(
            peak: halves * blocks + 2 * jpeg + basis.kept(jpeg), result: jpeg, raster: 0)
    }

    /// Writes an opaque 8-bit raster with its orientation applied. Gamma and chromaticities are
    /// dropped, since a JPEG cannot hold them.
    ///
    /// - Returns: The JPEG; it exceeds the recipe's largest size if no quality is low enough.
    static func encoded(
        _ raster: consuming Raster, metadata: CarriedMetadata, by recipe: Recipe,
        _ interruption: Interruption
    ) throws(CodecError) -> ImageBytes {
        var raster = raster
        let halvesChroma = halvesChroma(&raster.rows)
        try interruption.check()
        try raster.turn(interruption)
        return try encoded(
            upright: raster, halvesChroma: halvesChroma, metadata: metadata, by: recipe,
            interruption)
    }

    /// The same for an upright raster.
    static func encoded(
        upright raster: borrowing Raster, halvesChroma: Bool, metadata: CarriedMetadata,
        by recipe: Recipe,
        _ interruption: Interruption
    ) throws(CodecError) -> ImageBytes {
        let rows = raster.rows
        guard let start = rows.rows else { throw .outOfMemory("no pixels") }
        var segments = JPEGFile.segments(of: metadata)
        if let profile = raster.colour.profile { segments += JPEGFile.profileSegments(profile) }
        func encoded(_ quality: Int, _ most: Int) throws(CodecError) -> ImageBytes? {
            var result = cjpeg_result()
            try interruption.run { message in
                cjpeg_encode(
                    start + 1, rows.row_bytes + 1, rows.width, rows.height,
                    rows.color_type == 0 ? 1 : 3, Int32(quality), halvesChroma, segments,
                    segments.count, most, interruption.pointer, &result, message)
            }
            return result.bytes.map { ImageBytes(owning: $0, count: result.length) }
        }
        return try QualitySearch.fitting(recipe, encoded)
    }

    /// Whether to store one chroma sample for two by two pixels, as photographs do.
    ///
    /// Where neighbours differ mostly in colour, the colour would be smeared over two pixels. This
    /// shows most in flat graphics, and beyond a mean chroma difference of 6: 16 photographs are
    /// well below (0.2 to 3.4), small icons of strong colours above.
    ///
    /// Pictures of more than 16 megapixels always halve chroma: their lines are thicker, and full
    /// chroma would take the encoder twice the memory.
    static func halvesChroma(_ rows: inout cpng_image) -> Bool {
        Int(rows.width) * Int(rows.height) > mostPixelsOfWholeChroma
            || cpng_flatness(&rows) < PNGEncoding.leastFlatness && cpng_chroma_detail(&rows) < 6
    }
}
