internal import CPNG
internal import CResample
internal import Glibc

/// The parameters of a resize.
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
    /// - Throws: `outOfMemory`, `cancelled`, or `limitExceeded`.
    func resampled(
        _ resampling: Resampling, _ interruption: Interruption
    ) throws(CodecError) -> Raster {
        precondition(bitDepth >= 8 && !isIndexed && alpha != .byColour)
        let pixelBytes = channels * bitDepth / 8
        var made = rows
        made.width = UInt32(resampling.widthInPixels)
        made.height = UInt32(resampling.heightInPixels)
        made.row_bytes = resampling.widthInPixels * pixelBytes
        made.interruption = interruption.pointer
        let (bytes, overflow) = (made.row_bytes + 1).multipliedReportingOverflow(
            by: resampling.heightInPixels)
        guard !overflow, let memory = malloc(bytes) else {
            throw .outOfMemory("no memory for the pixels")
        }
        made.rows = memory.bindMemory(to: UInt8.self, capacity: bytes)
        let result = Raster(
            owning: made, colour: colour, orientation: orientation, decodeDuration: decodeDuration)
        try fill(result.rows, resampling, interruption)
        return result
    }

    private func fill(
        _ made: cpng_image, _ resampling: Resampling, _ interruption: Interruption
    ) throws(CodecError) {
        guard let from = rows.rows, let to = made.rows else { return }
        var source = cresample_source(
            pixels: from + 1, stride: stride, width: rows.width, height: rows.height,
            channels: Int32(channels), bit_depth: rows.bit_depth)
        var target = cresample_target(
            pixels: to + 1, stride: made.row_bytes + 1, width: made.width, height: made.height)
        var rectangle = cresample_rectangle(
            x: resampling.area.x, y: resampling.area.y, width: resampling.area.width,
            height: resampling.area.height)
        var options = cresample_options(
            filter: CRESAMPLE_AUTOMATIC, is_linear: resampling.isLinear, path: CRESAMPLE_FASTEST,
            interruption: interruption.pointer)
        switch cresample_resize(&source, &rectangle, &options, &target) {
        case CRESAMPLE_OK: return
        case CRESAMPLE_INTERRUPTED: throw interruption.error
        default: throw .outOfMemory("no memory to resize")
        }
    }
}
