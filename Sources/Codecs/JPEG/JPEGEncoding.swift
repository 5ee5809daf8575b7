internal import CJPEG
internal import CPNG
internal import PrefetchModel

extension ImageEncoder {
    static let jpeg = ImageEncoder(
        // libjpeg's limit (`JPEG_MAX_DIMENSION`).
        sideLimit: SideLimit(subject: "a JPEG", pixels: 65500), hasAlpha: false,
        workingMemory: { 6 * $0.pixels },
        memory: JPEGEncoding.memory, encode: JPEGEncoding.encoded)
}

enum JPEGEncoding {
    /// The largest picture that may be stored as 4:4:4.
    static let mostPixelsOfWholeChroma = 16_000_000

    /// Grey or RGB rows with, in turn, the rows before alpha was removed, turned rows, or all
    /// coefficients and the output.
    static func memory(_ basis: EstimateBasis) -> MemoryEstimate {
        let (pixels, recipe) = (basis.pixels, basis.recipe)
        let isLarge = pixels > ByteEstimate(mostPixelsOfWholeChroma)
        let coefficients = (isLarge ? 3 : 6) * pixels
        let jpeg = recipe.quality > 90 ? 6 * pixels : 3 * pixels / 2
        let trials = min(ByteEstimate(recipe.maximumStoredBytes ?? 0), 3 * pixels)
        let raster = 3 * pixels + basis.height
        return MemoryEstimate(
            peak: basis.margin + raster + coefficients + jpeg + 2 * trials, result: jpeg,
            raster: raster)
    }

    /// Writes an opaque 8-bit raster with its orientation applied. Gamma and chromaticities are
    /// dropped, since a JPEG cannot hold them.
    ///
    /// `exif` is the TIFF structure that the recipe keeps.
    ///
    /// - Returns: The JPEG; it exceeds the recipe's largest size if no quality is low enough.
    static func encoded(
        _ raster: consuming Raster, exif: [UInt8]?, by recipe: Recipe, _ interruption: Interruption
    ) throws(CodecError) -> ImageBytes {
        var raster = raster
        let halvesChroma = halvesChroma(&raster.rows)
        try interruption.check()
        try raster.turn(interruption)
        let rows = raster.rows
        guard let start = rows.rows else { throw .outOfMemory("no pixels") }
        var segments = exif.flatMap(JPEGFile.exifSegment) ?? []
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
