internal import PrefetchModel

/// The samples of a decoded raster.
enum RasterForm: Hashable {
    /// The file's own samples, where a raster can have them; for a JPEG 8-bit grey or RGB.
    case native
    /// The form of ``Raster/opaque(over:_:)``; not with a conversion, which must precede it.
    case opaque(RGBColor)
}

/// A request to a decoder.
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
