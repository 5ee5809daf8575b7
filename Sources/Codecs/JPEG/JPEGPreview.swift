internal import CJPEG
internal import Glibc

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
