internal import CJPEG
internal import CPNG

/// The formats that are decoded and the versions of their libraries: `jpeg/2.1.5,png/1.6.39`.
package let decoderVersions =
    "jpeg/\(String(cString: cjpeg_library_version())),png/\(String(cString: cpng_library_version()))"
