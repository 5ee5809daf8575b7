internal import CJPEG
internal import CPNG
internal import CPlaceholder
internal import PrefetchModel

extension Placeholder {
    /// Computes the placeholder of a raster, with the orientation applied; the raster is not
    /// modified.
    ///
    /// - Returns: nil for a raster without pixels.
    init?(of raster: borrowing Raster) {
        guard let pixels = raster.rows.rows else { return nil }
        var rows = cplaceholder_rows(
            pixels: pixels + 1, stride: raster.stride, width: raster.rows.width,
            height: raster.rows.height, color_type: raster.rows.color_type,
            bit_depth: raster.rows.bit_depth, palette: nil, key: nil, plane_bytes: 0,
            last_column: 1, last_row: 1)
        var samples = raster.colour.samples
        let (isIndexed, orientation) = (raster.isIndexed, raster.orientation)
        self = withUnsafePointer(to: &samples) { samples in
            let start = UnsafeRawPointer(samples)
            if isIndexed, let offset = MemoryLayout<cpng_colours>.offset(of: \.palette) {
                rows.palette = (start + offset).assumingMemoryBound(to: UInt32.self)
            }
            if !isIndexed, samples.pointee.has_key,
                let offset = MemoryLayout<cpng_colours>.offset(of: \.key)
            {
                rows.key = (start + offset).assumingMemoryBound(to: UInt16.self)
            }
            return Placeholder(of: rows, orientation)
        }
    }

    /// Computes the placeholder of a preview noted while a JPEG was decoded, with the orientation
    /// applied.
    ///
    /// - Returns: nil if the preview is incomplete.
    init?(of preview: cjpeg_preview, orientation: Int) {
        guard preview.is_complete, let pixels = preview.pixels else { return nil }
        let isGrey = preview.channels == 1
        let rows = cplaceholder_rows(
            pixels: pixels, stride: Int(preview.width), width: preview.width,
            height: preview.height, color_type: isGrey ? 0 : 2, bit_depth: 8, palette: nil,
            key: nil, plane_bytes: isGrey ? 0 : Int(preview.width) * Int(preview.height),
            last_column: preview.last_column, last_row: preview.last_row)
        self.init(of: rows, orientation)
    }

    private init(of rows: cplaceholder_rows, _ orientation: Int) {
        var (rows, made) = (rows, cplaceholder())
        cplaceholder_make(&rows, Int32(orientation), &made)
        let colour = made.colour
        self.init(
            thumbHash: withUnsafeBytes(of: made.hash) { Array($0.prefix(Int(made.hash_length))) },
            colour: made.has_colour
                ? RGBColor(red: colour.0, green: colour.1, blue: colour.2) : nil)
    }
}
