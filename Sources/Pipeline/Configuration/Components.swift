internal import CZlib
import CacheStorage
import Codecs
import Transfers
import URLParsing

/// What a run is made of besides this program, for `--version`.
package enum Components {
    /// One line each: the schema of the cache, then the libraries. As they are loaded, but for those
    /// that cannot be asked.
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

    /// The version, or that and why there is none.
    private static var libcurl: String {
        do throws(CurlLibrary.Missing) {
            return "libcurl \(try CurlVersion.text())"
        } catch {
            return "libcurl cannot be loaded: \(error.reason); \(error.hint)"
        }
    }
}
