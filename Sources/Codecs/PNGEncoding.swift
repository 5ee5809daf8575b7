internal import CPNG

/// Chooses how rows are filtered and compressed.
enum PNGEncoding {
    /// Writes the rows, which are used up, as a PNG file.
    ///
    /// - Returns: nil when the file would reach `maximumBytes`.
    /// - Throws: `outOfMemory`.
    static func encoded(
        _ rows: inout cpng_image, chunks: [UInt8], maximumBytes: Int
    ) throws(CodecError) -> ImageBytes? {
        let (filter, level) = choice(&rows)
        var output: UnsafeMutablePointer<UInt8>?
        var length = 0
        let status = cpng_encode(
            &rows, chunks, chunks.count, filter, level, maximumBytes, &output, &length)
        guard status == CPNG_OK else { throw .outOfMemory("no memory for the output") }
        return output.map { ImageBytes(owning: $0, count: length) }
    }

    /// Indices and packed pixels have no neighbourly differences: no filter. Photographs: the
    /// adaptive filter with level 3, the fastest that stays below libpng's default size (measured
    /// on 23 photographs, one core: level 1 57 Mpixel/s at 1.030 of it, level 2 41 at 1.006, level
    /// 3 36 at 0.998, level 6 22 at 0.979). Flat graphics: whether filters help depends on the picture, so
    /// both ways are tried on some of its rows.
    private static func choice(_ rows: inout cpng_image) -> (cpng_filter, Int32) {
        if rows.bit_depth < 8 || rows.color_type == 3 { return (CPNG_FILTER_NONE, 6) }
        if cpng_flatness(&rows) < 0.4 { return (CPNG_FILTER_ADAPTIVE, 3) }
        let sampleRows: UInt32 = 64
        let middle = rows.height > sampleRows ? (rows.height - sampleRows) / 2 : 0
        let count = min(rows.height, sampleRows)
        let plain = cpng_trial(&rows, middle, count, CPNG_FILTER_NONE, 6)
        let filtered = cpng_trial(&rows, middle, count, CPNG_FILTER_ADAPTIVE, 6)
        return (plain <= filtered ? CPNG_FILTER_NONE : CPNG_FILTER_ADAPTIVE, 6)
    }
}
