internal import CPNG
internal import PrefetchModel

/// Chooses how rows are filtered and compressed.
enum PNGEncoding {
    /// Writes the rows, which are used up, as a PNG file.
    ///
    /// - Returns: nil when the file would reach `maximumBytes`.
    /// - Throws: `outOfMemory`.
    static func encoded(
        _ rows: inout cpng_image, chunks: [UInt8], effort: PNGEffort, maximumBytes: Int
    ) throws(CodecError) -> ImageBytes? {
        let (filter, level) = choice(&rows, effort)
        var output: UnsafeMutablePointer<UInt8>?
        var length = 0
        let status = cpng_encode(
            &rows, chunks, chunks.count, filter, level, maximumBytes, &output, &length)
        guard status == CPNG_OK else { throw .outOfMemory("no memory for the output") }
        return output.map { ImageBytes(owning: $0, count: length) }
    }

    /// libdeflate's levels for what has been filtered as a photograph, and for everything else.
    ///
    /// Measured on 23 photographs, one core, in Mpixel/s and parts of libpng's default size: level 1 57
    /// at 1.030, level 2 41 at 1.006, level 3 36 at 0.998, level 6 22 at 0.979. `balanced` takes the
    /// fastest that stays below that size.
    private static func levels(_ effort: PNGEffort) -> (photograph: Int32, other: Int32) {
        switch effort {
        case .fast: (1, 3)
        case .balanced: (3, 6)
        case .small: (9, 12)
        }
    }

    /// Indices and packed pixels have no neighbourly differences: no filter. Photographs: the
    /// adaptive filter. Flat graphics: whether filters help depends on the picture, so both ways are
    /// tried on some of its rows.
    private static func choice(
        _ rows: inout cpng_image, _ effort: PNGEffort
    ) -> (cpng_filter, Int32) {
        let (photograph, other) = levels(effort)
        if rows.bit_depth < 8 || rows.color_type == 3 { return (CPNG_FILTER_NONE, other) }
        if cpng_flatness(&rows) < 0.4 { return (CPNG_FILTER_ADAPTIVE, photograph) }
        let sampleRows: UInt32 = 64
        let middle = rows.height > sampleRows ? (rows.height - sampleRows) / 2 : 0
        let count = min(rows.height, sampleRows)
        let plain = cpng_trial(&rows, middle, count, CPNG_FILTER_NONE, other)
        let filtered = cpng_trial(&rows, middle, count, CPNG_FILTER_ADAPTIVE, other)
        return (plain <= filtered ? CPNG_FILTER_NONE : CPNG_FILTER_ADAPTIVE, other)
    }
}
