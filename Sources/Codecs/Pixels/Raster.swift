internal import CPNG
internal import Glibc
internal import PrefetchModel

/// Decoded pixels, rows from the top, in memory of their own.
///
/// A row is a spare byte and ``bytesPerRow`` bytes of samples. Samples of 16 bits are big-endian;
/// samples of fewer than 8 bits are packed from the high bits. Their order is grey · grey, alpha ·
/// red, green, blue · red, green, blue, alpha · index.
struct Raster: ~Copyable {
    enum Alpha {
        /// Every pixel is opaque.
        case none
        /// The last sample of each pixel, not premultiplied.
        case straight
        /// By the palette, or one colour is fully transparent.
        case byColour
    }

    /// The rows for encoders and transformations in C.
    var rows: cpng_image
    var colour: ColourDescription
    /// EXIF orientation, 1…8, still to be applied to the rows.
    var orientation: Int

    /// Takes over the memory of the rows.
    init(
        owning rows: cpng_image, colour: ColourDescription = ColourDescription(),
        orientation: Int = ExifOrientation.upright
    ) {
        self.rows = rows
        self.colour = colour
        self.orientation = orientation
    }

    /// Rows of 8 bits in new memory: zero if `isClear`, else undefined.
    init(
        width: Int, height: Int, channels: Int, isClear: Bool = false,
        orientation: Int = ExifOrientation.upright, _ interruption: Interruption
    ) throws(CodecError) {
        let (stride, isLong) = width.multipliedReportingOverflow(by: channels)
        let (total, isLarge) = (stride + 1).multipliedReportingOverflow(by: height)
        guard !isLong, !isLarge, let memory = isClear ? calloc(total, 1) : malloc(total) else {
            throw .outOfMemory("no memory for the pixels")
        }
        self.init(
            owning: cpng_image_of(
                memory.assumingMemoryBound(to: UInt8.self), UInt32(width), UInt32(height),
                Int32(channels), interruption.pointer),
            orientation: orientation)
    }

    deinit {
        var rows = rows
        cpng_image_free(&rows)
    }

    var firstSample: UnsafeMutablePointer<UInt8> {
        guard let start = rows.rows else { preconditionFailure("a raster without rows") }
        return start + 1
    }

    var widthInPixels: Int { Int(rows.width) }
    var heightInPixels: Int { Int(rows.height) }
    /// Without the spare byte.
    var bytesPerRow: Int { rows.row_bytes }
    /// Bytes from one row to the next.
    var stride: Int { rows.row_bytes + 1 }
    /// 1, 2, 4, 8 or 16 bits a sample.
    var bitDepth: Int { Int(rows.bit_depth) }
    /// Whether each sample is an index into the palette.
    var isIndexed: Bool { rows.color_type == 3 }
    /// Samples a pixel, 1…4.
    var channels: Int { [1, 0, 3, 1, 2, 0, 4][Int(rows.color_type)] }
    var alpha: Alpha {
        if rows.color_type & 4 != 0 { return .straight }
        return colour.hasTransparentColours(isIndexed: isIndexed) ? .byColour : .none
    }

    /// Replaces the interruption under which the rows were decoded, for all later work on them.
    mutating func follow(_ interruption: Interruption) {
        rows.interruption = interruption.pointer
    }

    func copy() throws(CodecError) -> Raster {
        try sample(bands: heightInPixels, rows: 1)
    }

    /// A copy of `bands` bands of `height` rows, spread evenly from top to bottom; all rows of a
    /// smaller picture.
    func sample(bands: Int, rows height: Int) throws(CodecError) -> Raster {
        var (source, copied) = (rows, cpng_image())
        guard cpng_sample(&source, UInt32(bands), UInt32(height), &copied) == CCODEC_OK else {
            throw .outOfMemory("no memory for the pixels")
        }
        return Raster(owning: copied, colour: colour, orientation: orientation)
    }

    /// 8-bit grey or RGB: palettes and fewer bits expanded, 16 bits rounded to 8, and transparency
    /// blended over the background in the samples' own encoding of light.
    func opaque(
        over background: RGBColor, _ interruption: Interruption
    ) throws(CodecError) -> Raster {
        try converted(interruption) { source, samples, made in
            cpng_make_opaque(
                source, samples, [background.red, background.green, background.blue], made)
        }
    }

    /// A new raster of 8-bit samples without a palette, made by a C function.
    func converted(
        _ interruption: Interruption,
        _ convert: (
            UnsafePointer<cpng_image>, UnsafePointer<cpng_colours>, UnsafeMutablePointer<cpng_image>
        ) -> ccodec_status
    ) throws(CodecError) -> Raster {
        var (source, samples, made) = (rows, colour.samples, cpng_image())
        source.interruption = interruption.pointer
        try interruption.check(
            convert(&source, &samples, &made), noMemory: "no memory for the pixels")
        return Raster(
            owning: made, colour: ColourDescription(profile: colour.profile),
            orientation: orientation)
    }

    /// The same raster, or an opaque copy if requested and not yet opaque.
    consuming func formed(
        as form: RasterForm, _ interruption: Interruption
    ) throws(CodecError) -> Raster {
        guard case .opaque(let background) = form, isIndexed || bitDepth != 8 || alpha != .none
        else { return self }
        return try opaque(over: background, interruption)
    }

    mutating func turn(_ interruption: Interruption) throws(CodecError) {
        guard orientation != ExifOrientation.upright else { return }
        try interruption.check(
            cpng_turn(&rows, Int32(orientation)), noMemory: "no memory for the pixels")
        orientation = ExifOrientation.upright
    }
}

/// The samples of a raster for a result.
enum RasterForm: Hashable {
    /// As ``ImageDecoding/raster(at:_:)`` decodes them.
    case native
    /// The form of ``Raster/opaque(over:_:)``; not with a conversion, which must precede it.
    case opaque(RGBColor)
}

struct RasterRequest {
    var form: RasterForm
    /// Applied to the decoded picture; nil leaves its samples as the file declares them.
    var conversion: ColourConversion?
    var scale = DecodingScale.full
}

/// The reciprocal of the scale at which a picture is decoded, for less than the whole picture.
///
/// JPEG supports all of them. Other decoders make the whole picture, as the raster's size tells.
enum DecodingScale: Int, CaseIterable {
    case full = 1
    case half = 2
    case quarter = 4
    case eighth = 8
}
