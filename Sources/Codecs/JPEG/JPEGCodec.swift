internal import CColour
internal import CJPEG
internal import CPNG
internal import Glibc
internal import PrefetchModel

extension ImageCodec {
    /// JPEG (ITU-T T.81) by libjpeg-turbo: decoded, encoded, and transcoded from its coefficients.
    static let jpeg = ImageCodec(
        decoder: { "jpeg/\(String(cString: cjpeg_library_version()))-3" },
        same: .encoded(as: .jpeg, ignoring: [.background, .effort, .animation]),
        source: JPEGSource.self, encoder: .jpeg)
}

extension JPEGSource {
    static var decodesAtScales: Bool { true }

    static func rasterMemory(of header: ImageHeader, for recipe: Recipe) -> ByteEstimate {
        EstimateBasis(header, recipe).ofRaster + keptCoefficients(of: header)
    }

    /// All coefficients, if they are kept until the last scan.
    private static func keptCoefficients(of header: ImageHeader) -> ByteEstimate {
        ByteEstimate(header.isProgressiveOrInterlaced ? header.memory.coefficientBytes : 0)
    }

    static func memory(of header: ImageHeader, for recipe: Recipe) -> MemoryEstimate {
        let basis = EstimateBasis(header, recipe)
        let all = ByteEstimate(header.memory.coefficientBytes)
        // The preview for a placeholder: three samples for each block of 64.
        let preview = basis.pixels / 16
        let coefficients = keptCoefficients(of: header)
        switch EncodedFormat(recipe, of: header, by: .jpeg) {
        case nil:
            return MemoryEstimate(peak: basis.margin + preview + coefficients, result: 0, raster: 0)
        case .encoded(.jpeg), .container:
            // An output buffer grows by doubling, up to the source's length unless a larger output
            // is kept.
            let buffer = (recipe.keepsLarger ? 4 : 2) * basis.source
            // The first result is kept during the search for smaller ones.
            let output = recipe.maximumStoredBytes == nil ? buffer : 2 * buffer
            // Turned coefficients exist together with the original ones; of 4:4:4, which has six
            // bytes a pixel, so does half as much for halved chroma. The symbols of a transcoded
            // file take no more, nor does the preview of a large one.
            let isWhole = header.channels == 3 && all >= 5 * basis.pixels
            let arrays = basis.isTurned ? 2 * all : isWhole ? all + all / 2 : all
            return MemoryEstimate(
                peak: basis.margin + preview + arrays + output,
                result: buffer, raster: 0)
        case .encoded(.png):
            let decoded = max(basis.rows, basis.turnedRows)
            // In addition to the rows: first coefficients, then turned rows, then the output; with
            // more effort a copy of the rows and two outputs.
            return MemoryEstimate(
                peak: basis.margin + basis.packing + decoded
                    + max(coefficients, (basis.isSmall ? 3 : 1) * decoded),
                result: decoded, raster: decoded)
        case let format?:
            // The coefficients are freed before encoding.
            return basis.encoding(format).atLeast(rasterMemory(of: header, for: recipe))
        }
    }
}

/// A JPEG, its markers read up to the first scan.
struct JPEGSource: ImageDecoding {
    let source: UnsafeRawBufferPointer
    let header: ImageHeader
    let limits: CodecLimits
    let file: JPEGFile
    let bytes: UnsafePointer<UInt8>
    private let preview = JPEGPreview()
    let note = WarningNote()

    /// From this size on, our own decoder reads baseline pictures. Its tables take 10 µs unless the
    /// previous picture had the same, which it saves by then.
    static let leastOwnPixels = 1 << 14

    init(
        _ source: UnsafeRawBufferPointer, header: ImageHeader, limits: CodecLimits
    ) throws(CodecError) {
        self.source = source
        self.header = header
        self.limits = limits
        bytes = try source.start
        file = try JPEGFile(headerOf: source)
    }

    static func header(of source: UnsafeRawBufferPointer) throws(CodecError) -> ImageHeader {
        try JPEGFile(headerOf: source).imageHeader()
    }

    func check(
        _ depth: CheckDepth, memoryBytes: Int, _ interruption: Interruption
    ) throws(CodecError) {
        switch depth {
        case .ignoredByDecoder:
            // The decoder has its own words for other faults.
            if file.frame?.isProgressive == true { note.note(try? file.checkScans(limits)) }
        case .structure: note.note(try file.checkScans(limits))
        case .pixels: _ = try verified(interruption)
        }
    }

    func verified(_ interruption: Interruption) throws(CodecError) -> cjpeg_result {
        try called(interruption) { limits, result, message in
            cjpeg_verify(bytes, source.count, limits, result, message)
        }
    }

    /// 8-bit grey or RGB, always opaque.
    func raster(
        at scale: DecodingScale, _ interruption: Interruption
    ) throws(CodecError) -> Raster {
        let result = try called(interruption, at: scale, takesInks: true) {
            limits, result, message in
            cjpeg_decode_scaled(
                bytes, source.count, limits, 1, UInt32(scale.rawValue), result, message)
        }
        return try raster(of: result, interruption)
    }

    func rasters(
        at scales: [DecodingScale], _ interruption: Interruption
    ) throws(CodecError) -> ScaledRasters {
        let largest = scales.map(\.rawValue).min().flatMap(DecodingScale.init) ?? .full
        let denominators = scales.map { UInt32($0.rawValue) }
        var results = [cjpeg_result](repeating: cjpeg_result(), count: scales.count)
        _ = try called(interruption, at: largest, takesInks: true) { limits, _, message in
            cjpeg_decode_scales(
                bytes, source.count, limits, 1, denominators, denominators.count, &results, message)
        }
        var rasters = ScaledRasters()
        results.forEach(noteFaults)
        for (scale, result) in zip(scales, results) {
            rasters.put(try raster(of: result, interruption), at: scale)
        }
        return rasters
    }

    /// The conversion of CMYK by its profile; nil without a usable one.
    private var inkTransform: ColourTransform? {
        get throws(CodecError) {
            guard case .inks(let profile?) = colours else { return nil }
            return try ColourTransforms.transform(from: profile, CCOLOUR_INKS)
        }
    }

    var colours: SourceColours {
        let profile = file.profile.flatMap { profile in
            ICCProfile.applies(profile, toChannels: header.channels) ? profile : nil
        }
        return header.channels == 4 ? .inks(profile: profile) : SourceColours(profile)
    }

    private func raster(
        of result: cjpeg_result, _ interruption: Interruption
    ) throws(CodecError) -> Raster {
        guard let decoded = result.bytes else { throw .outOfMemory("no pixels") }
        let rows = cpng_image_of(
            decoded, result.width, result.height, result.channels, interruption.pointer)
        return Raster(owning: rows, orientation: file.orientation)
    }

    func ownWay(by recipe: Recipe) -> OwnWay? {
        .shortcut { interruption throws(CodecError) in
            try JPEGRewriting(jpeg: self, recipe: recipe, interruption: interruption)
                .requantised()
        }
    }

    var metadata: CarriedMetadata { file.carriedMetadata }

    var companions: Set<Companion> { file.companions }

    func notePlaceholder() -> () -> Placeholder? {
        preview.want()
        return { [preview, file] in
            preview.pointer.flatMap { Placeholder(of: $0.pointee, orientation: file.orientation) }
        }
    }

    /// Calls into libjpeg, under the limits. The pixel limit applies to the decoded scale. With
    /// `takesInks`, CMYK is converted by the file's profile.
    func called(
        _ interruption: Interruption, at scale: DecodingScale = .full, takesInks: Bool = false,
        _ body: (
            UnsafePointer<cjpeg_limits>, UnsafeMutablePointer<cjpeg_result>,
            UnsafeMutablePointer<CChar>
        ) -> ccodec_status
    ) throws(CodecError) -> cjpeg_result {
        var result = cjpeg_result()
        var limits = cjpeg_limits(
            maximum_pixels: UInt64(limits.maximumPixels).multipliedClamping(
                by: UInt64(scale.rawValue * scale.rawValue)),
            maximum_scans: Int32(clamping: limits.maximumScans),
            maximum_warnings: Int32(clamping: limits.maximumWarnings),
            maximum_memory_bytes: UInt64(limits.maximumLibraryBytes),
            least_own_pixels: UInt64(JPEGSource.leastOwnPixels),
            interruption: interruption.pointer, preview: preview.pointer, inks: cjpeg_inks())
        let transform = takesInks ? try inkTransform : nil
        if let transform {
            limits.inks = cjpeg_inks(
                convert: { context, inks, rgb, count in
                    ccolour_convert(OpaquePointer(context), CCOLOUR_FASTEST, 4, inks, rgb, count)
                }, context: UnsafeRawPointer(transform.pointer))
        }
        try withExtendedLifetime(transform) { () throws(CodecError) in
            try interruption.run { message in body(&limits, &result, message) }
        }
        noteFaults(of: result)
        return result
    }

    private func noteFaults(of result: cjpeg_result) {
        guard result.has_foreign_bytes else { return }
        note.note(
            ImageWarning(text: "foreign bytes stand between the data of blocks and a marker"))
    }
}

extension cjpeg_result {
    var decodeDuration: Duration { .nanoseconds(Int64(clamping: decode_nanoseconds)) }
    var encodeDuration: Duration { .nanoseconds(Int64(clamping: encode_nanoseconds)) }
}

extension UInt64 {
    fileprivate func multipliedClamping(by factor: UInt64) -> UInt64 {
        let (product, overflows) = multipliedReportingOverflow(by: factor)
        return overflows ? .max : product
    }
}

/// A small preview that libjpeg's boundary records while it processes the coefficients.
///
/// Like its source, for use by one thread.
final class JPEGPreview {
    /// Nil until a preview is requested.
    private(set) var pointer: UnsafeMutablePointer<cjpeg_preview>?

    /// Records a preview during later decoding.
    func want() {
        guard pointer == nil else { return }
        let pointer = UnsafeMutablePointer<cjpeg_preview>.allocate(capacity: 1)
        pointer.initialize(to: cjpeg_preview())
        self.pointer = pointer
    }

    deinit {
        free(pointer?.pointee.pixels)
        pointer?.deallocate()
    }
}
