internal import CZlib
import CacheStorage
import Codecs
import PrefetchModel
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
        ] + CodecLibraries.optional
    }

    private static var libcurl: String {
        do {
            return "libcurl \(try CurlVersion.text())"
        } catch {
            return "libcurl cannot be loaded: \(error.message); \(error.hint ?? "")"
        }
    }
}
