internal import CDeflate
internal import CJPEG
internal import CLoader
internal import CPNG
internal import CXML
package import PrefetchModel

/// The libraries behind the codecs.
package enum CodecLibraries {
    /// As it is loaded.
    package static var libpng: String { String(cString: cpng_library_version()) }
    /// As the program was built with it: the loaded one does not say.
    package static var libjpegTurbo: String { String(cString: cjpeg_library_version()) }
    /// The decoded formats and the versions of their decoders: `jpeg/2.1.5,png/1.6.39`.
    package static let decoders = ImageFormat.allCases.compactMap { $0.codec?.decoder() }
        .joined(separator: ",")
    /// The version of the library that applies profiles: `colours/2.14`. Different without it, so
    /// that its failures are retried once it is installed.
    package static let colours = "colours/\(LittleCMS.version ?? "missing")"
    /// The meaning of `same` for each format that some build decodes.
    package static let sameRules: SameRules = Dictionary(
        uniqueKeysWithValues: ImageFormat.allCases.compactMap { format in
            format.sameRule.map { (format.rawValue, $0) }
        })
    /// Whether this build decodes the format, which its traits decide.
    package static func decodes(_ format: ImageFormat) -> Bool { format.codec != nil }
    /// The value of `Accept` for the formats that this build decodes.
    package static let accept =
        (ImageFormat.allCases.filter(decodes).map(\.mediaType)
        + ["image/*;q=0.5", "*/*;q=0.1"]).joined(separator: ", ")
    /// The optional libraries with the versions as loaded, or why they cannot be loaded: `libwebp
    /// 1.2.4`.
    package static var optional: [String] {
        var lines: [String] = []
        #if WebP
            lines.append("libwebp \(WebPSource.version)")
        #endif
        #if AVIF
            if let missing = LibAVIF.missing {
                lines.append("libavif cannot be loaded: \(missing)")
            } else {
                lines.append("libavif \(LibAVIF.versions.joined(separator: " with dav1d "))")
            }
        #endif
        #if GIF
            lines.append("giflib \(GIFSource.version) (built with)")
        #endif
        lines.append(
            LittleCMS.version.map { "liblcms2 \($0)" }
                ?? "liblcms2 cannot be loaded: \(LittleCMS.missing ?? "")")
        return lines
    }
    /// Loads the libraries that are otherwise loaded on first use. libavif and the libraries behind
    /// it are by far the largest; ``needsAVIF(_:_:)`` tells whether an image needs them.
    package static func load(avif: Bool) {
        _ = LittleCMS.missing
        #if AVIF
            if avif { _ = LibAVIF.missing }
        #endif
    }

    /// Whether libavif decodes the image or makes one of its results.
    package static func needsAVIF(_ source: ImageFormat?, _ recipes: [Recipe]) -> Bool {
        source == .avif || recipes.contains(where: needsAVIF)
    }

    /// Whether libavif may make a result by this recipe, of an image of any other format.
    package static func needsAVIF(_ recipe: Recipe) -> Bool {
        recipe.encoding == .avif
            || recipe.encoding == .auto && recipe.allowedFormats.contains(.avif)
    }

    /// The files of all libraries that were loaded on first use, of other modules too.
    package static var loadedFiles: [String] {
        Array(
            sequence(state: 0) { index in
                defer { index += 1 }
                return cloader_path(index).map { String(cString: $0) }
            })
    }
    /// The loaded version, without its name: `2.5.0`.
    package static var expat: String {
        String(String(cString: cxml_library_version()).drop { $0 != "_" }.dropFirst())
    }

    /// As the program was built with it: the loaded one does not say.
    package static var libdeflate: String { String(cString: cdeflate_library_version()) }
}
