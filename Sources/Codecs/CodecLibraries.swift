internal import CJPEG
internal import CPNG
internal import CXML
package import PrefetchModel

/// The libraries behind the codecs.
package enum CodecLibraries {
    /// As it is loaded.
    package static var libpng: String { String(cString: cpng_library_version()) }
    /// As the program was built with it: the loaded one does not say.
    package static var libjpegTurbo: String { String(cString: cjpeg_library_version()) }
    /// The formats that are decoded, and the versions of what decodes them: `jpeg/2.1.5,png/1.6.39`.
    package static let decoders = ImageFormat.allCases.compactMap { $0.codec?.decoder }
        .joined(separator: ",")
    /// As it is loaded, without its name: `2.5.0`.
    package static var expat: String {
        String(String(cString: cxml_library_version()).drop { $0 != "_" }.dropFirst())
    }

    /// Whether images of the format are decoded, and not stored as they came.
    package static func decodes(_ format: ImageFormat) -> Bool { format.codec != nil }

    /// As the program was built with it: the loaded one does not say.
    package static var libdeflate: String { String(cString: cpng_deflate_version()) }
}
