/// Whether a file's own bytes tell where it ends.
///
/// Half of a bare JPEG XL codestream looks whole; every other stored format states its end.
package func statesItsEnd(_ file: UnsafeRawBufferPointer) -> Bool {
    !(file.first == 0xFF && JPEGXLContainer.isAnnounced(by: file))
}
