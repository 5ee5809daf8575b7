internal import CJPEG
internal import Glibc

/// Holds the small preview that the C boundary collects while it works on coefficients.
///
/// Confined to one thread, as is its source.
final class JPEGPreview {
    /// Nil until it is wanted.
    private(set) var pointer: UnsafeMutablePointer<cjpeg_preview>?

    /// Starts collecting.
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
