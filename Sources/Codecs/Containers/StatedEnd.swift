internal import PrefetchModel

/// Whether a file's own bytes tell where it ends.
///
/// Half of a bare JPEG XL codestream looks whole. So does half of a container with a last box that
/// extends to the end of the file, if only its boxes are checked. In an AVIF, libavif checks that
/// the data of each item is there, and a JPEG 2000 ends with a marker.
package func statesItsEnd(_ file: UnsafeRawBufferPointer) -> Bool {
    let format = sniffed(file)
    switch format {
    case .jpegXL where file.first == 0xFF: return false
    case .jpegXL, .heif, .avif:
        var walk = BoxWalk(file)
        return format?.codec != nil || !walk.reachesOpenEnd()
    default: return true
    }
}
