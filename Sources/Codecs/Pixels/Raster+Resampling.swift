internal import CPNG
internal import CResample

struct Resampling {
    /// The part to use, in pixels of the raster; its edges may lie between pixels, and it lies
    /// inside.
    struct Area {
        var x: Double
        var y: Double
        var width: Double
        var height: Double
    }

    var area: Area
    /// The size of the result; both sides are at least 1.
    var widthInPixels: Int
    var heightInPixels: Int
    /// Whether samples are averaged in linear light, assuming sRGB, instead of in their encoding.
    var isLinear = false
}

extension Raster {
    /// Returns a part of the raster at another size, with the same channels, bit depth and colours.
    ///
    /// Averages and Lanczos 3, with colours weighted by alpha; opaque pixels stay opaque.
    /// `cresample_resize` documents its guarantees, and the memory that it needs beyond both
    /// rasters.
    ///
    /// - Precondition: 8 or 16 bits a sample, no palette and no transparent colour, since neither
    ///   can be averaged.
    func resampled(
        _ resampling: Resampling, _ interruption: Interruption
    ) throws(CodecError) -> Raster {
        precondition(bitDepth >= 8 && !isIndexed && alpha != .byColour)
        let made = try blank(resampling.widthInPixels, resampling.heightInPixels, interruption)
        guard let from = rows.rows, let to = made.rows.rows else { return made }
        var source = cresample_source(
            pixels: from + 1, stride: stride, width: rows.width, height: rows.height,
            channels: Int32(channels), bit_depth: rows.bit_depth)
        var target = cresample_target(
            pixels: to + 1, stride: made.stride, width: made.rows.width, height: made.rows.height)
        var rectangle = cresample_rectangle(
            x: resampling.area.x, y: resampling.area.y, width: resampling.area.width,
            height: resampling.area.height)
        var options = cresample_options(
            filter: CRESAMPLE_AUTOMATIC, is_linear: resampling.isLinear, path: CRESAMPLE_FASTEST,
            interruption: interruption.pointer)
        try interruption.check(
            cresample_resize(&source, &rectangle, &options, &target),
            noMemory: "no memory to resize")
        return made
    }
}
