internal import CJPEG
internal import Glibc

/// Where libjpeg's boundary notes a picture in small while it works on the coefficients.
///
/// For one thread, as the source that it belongs to is.
final class JPEGPreview {
    /// Nil until it is wanted.
    private(set) var pointer: UnsafeMutablePointer<cjpeg_preview>?

    /// Has what is decoded from now on noted.
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
