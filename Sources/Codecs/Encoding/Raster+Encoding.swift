internal import CPNG
internal import CPixels

extension Raster {
    /// Returns 8-bit red, green and blue, with alpha only if some pixel is not opaque.
    consuming func encodable(_ interruption: Interruption) throws(CodecError) -> Raster {
        let raster = try plainWithoutOpaqueAlpha(interruption)
        return raster.channels < 3 ? try raster.plain(hasColour: true, interruption) : raster
    }

    /// Returns plain 8-bit samples, with alpha only if some pixel is not opaque.
    consuming func plainWithoutOpaqueAlpha(
        _ interruption: Interruption
    ) throws(CodecError) -> Raster {
        let raster = isPlain ? self : try plain(interruption)
        guard raster.alpha == .straight, raster.isOpaque else { return raster }
        return try raster.plain(dropsAlpha: true, interruption)
    }

    /// Whether enough neighbouring pixels are equal for lossless encoding to be possibly smaller
    /// than lossy encoding.
    ///
    /// - Precondition: 8 bits a sample.
    var isFlat: Bool {
        var rows = rows
        return cpng_flatness(&rows) >= PNGEncoding.leastFlatness
    }

    /// Whether a lossless file is possibly smaller than a lossy one of `bytes`. Graphics may take a
    /// quarter of the estimate, and steps of gradients nearly nothing. Photographs are estimated at
    /// over 2 bits a pixel, and usually at six times the lossy file.
    /// `margin` multiplies the limit.
    ///
    /// - Precondition: the raster is plain.
    func mayBeSmallerLossless(than bytes: Int, margin: Double = 1) -> Bool {
        guard var picture else { return false }
        let pixels = Double(widthInPixels) * Double(heightInPixels)
        return cpixels_lossless_bits(&picture)
            <= margin * max(2, 8 * 4 * Double(bytes) / pixels)
    }

    /// - Precondition: the raster is plain.
    private var isOpaque: Bool {
        guard var picture else { return true }
        return cpixels_is_opaque(&picture)
    }

    /// Whether all samples are equal.
    ///
    /// - Precondition: both are plain and of the same form.
    func isEqual(to other: borrowing Raster) -> Bool {
        guard var first = picture, var second = other.picture else { return false }
        var difference = cpixels_rectangle()
        return !cpixels_difference(&first, &second, &difference)
    }

    /// Returns the similarity of two pictures, see `cpixels_similarity`; 1 if they are equal.
    ///
    /// - Precondition: both are plain and of the same size.
    func similarity(
        to other: borrowing Raster, _ interruption: Interruption
    ) throws(CodecError) -> Double {
        guard var first = picture, var second = other.picture else {
            throw .outOfMemory("no pixels")
        }
        precondition(first.width == second.width && first.height == second.height)
        var similarity = 0.0
        try interruption.check(
            cpixels_similarity(&first, &second, &similarity, interruption.pointer),
            noMemory: "no memory for a comparison")
        return similarity
    }

    /// The mean difference of a channel, 0…255, in the block that differs most from another
    /// picture; nil for the picture itself in 4:2:0.
    ///
    /// - Precondition: both are plain and of the same size.
    func worstBlock(
        beside other: ccodec_picture?, _ interruption: Interruption
    ) throws(CodecError) -> Double {
        guard var picture else { throw .outOfMemory("no pixels") }
        var worst = 0.0
        let status =
            if var other {
                cpixels_worst_block(&picture, &other, &worst, interruption.pointer)
            } else {
                cpixels_worst_block(&picture, nil, &worst, interruption.pointer)
            }
        try interruption.check(status, noMemory: "no memory for a comparison")
        return worst
    }

    /// The samples as the C functions take them; nil without rows.
    var picture: ccodec_picture? {
        rows.rows.map {
            ccodec_picture(
                pixels: $0 + 1, stride: stride, width: rows.width, height: rows.height,
                channels: Int32(channels))
        }
    }
}
