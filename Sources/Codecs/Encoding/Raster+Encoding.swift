internal import CPNG
internal import CPixels

extension Raster {
    /// 8-bit red, green and blue, with alpha only where a pixel is not opaque.
    ///
    /// - Throws: `outOfMemory`, or that it was interrupted.
    consuming func encodable(_ interruption: Interruption) throws(CodecError) -> Raster {
        let raster = try plainWithoutOpaqueAlpha(interruption)
        return raster.channels < 3 ? try raster.plain(hasColour: true, interruption) : raster
    }

    /// 8-bit samples that mean themselves, with alpha only where a pixel is not opaque.
    ///
    /// - Throws: `outOfMemory`, or that it was interrupted.
    consuming func plainWithoutOpaqueAlpha(
        _ interruption: Interruption
    ) throws(CodecError) -> Raster {
        let raster = isPlain ? self : try plain(interruption)
        guard raster.alpha == .straight, raster.isOpaque else { return raster }
        return try raster.plain(dropsAlpha: true, interruption)
    }

    /// Whether so many neighbours are equal that it may be smaller without any loss than with some.
    ///
    /// - Precondition: 8 bits a sample.
    var isFlat: Bool {
        var rows = rows
        return cpng_flatness(&rows) >= PNGEncoding.leastFlatness
    }

    /// - Precondition: 8 bits a sample that mean themselves.
    private var isOpaque: Bool {
        guard var picture else { return true }
        return cpixels_is_opaque(&picture)
    }

    /// How alike two pictures are, see `cpixels_similarity`; 1 for equal ones.
    ///
    /// - Throws: `outOfMemory`, or that it was interrupted.
    /// - Precondition: of the same size, with 8 bits a sample that mean themselves.
    func similarity(
        to other: borrowing Raster, _ interruption: Interruption
    ) throws(CodecError) -> Double {
        guard var first = picture, var second = other.picture else {
            throw .outOfMemory("no pixels")
        }
        precondition(first.width == second.width && first.height == second.height)
        var similarity = 0.0
        switch cpixels_similarity(&first, &second, &similarity, interruption.pointer) {
        case CPIXELS_OK: return similarity
        case CPIXELS_INTERRUPTED: throw interruption.error
        default: throw .outOfMemory("no memory for a comparison")
        }
    }

    /// As the functions of C take it; nil without rows.
    var picture: cpixels_picture? {
        rows.rows.map {
            cpixels_picture(
                pixels: $0 + 1, stride: stride, width: rows.width, height: rows.height,
                channels: Int32(channels))
        }
    }
}
