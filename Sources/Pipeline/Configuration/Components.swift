internal import CZlib
import CacheStorage
import Codecs
package import PrefetchModel
import Transfers
import URLParsing

/// The libraries and versions of the program, for `--version`.
package enum Components {
    /// One line for the schema of the cache, then one for each library, in its loaded version where
    /// the library tells it.
    package static var lines: [String] {
        [
            "cache schema \(StorageVersions.schema)",
            libcurl,
            "SQLite \(StorageVersions.sqlite)",
            "libpng \(CodecLibraries.libpng)",
            "libjpeg-turbo \(CodecLibraries.libjpegTurbo) (built with)",
            "libdeflate \(CodecLibraries.libdeflate) (built with)",
            "zlib \(String(cString: zlibVersion()))",
            "expat \(CodecLibraries.expat)",
        ] + CodecLibraries.optional + CodecLibraries.sandboxed
    }

    private static var libcurl: String {
        do {
            return "libcurl \(try CurlVersion.text())"
        } catch {
            return "libcurl cannot be loaded: \(error.message); \(error.hint ?? "")"
        }
    }
}

/// The formats that this build decodes, which the package's traits decide.
package enum DecodedFormats {
    package static let all = ImageFormat.allCases.filter(CodecLibraries.decodes)
}

/// The formats that this build encodes, which the package's traits decide.
package enum EncodedFormats {
    /// Returns the formats that a recipe requests and this build does not encode, for any source.
    package static func missing(for recipe: Recipe) -> [EncodedImageFormat] {
        var asked: Set<EncodedImageFormat> = recipe.encoding.format.map { [$0] } ?? []
        // The default list means all formats that are available.
        if recipe.encoding == .auto, recipe.allowedFormats != Recipe.defaultFormats {
            asked = recipe.allowedFormats
        }
        return EncodedImageFormat.allCases.filter { asked.contains($0) && !$0.isMade }
    }
}
