/// Finds the JPEG quality at which an image fits into a number of bytes.
enum QualitySearch {
    /// Below it blocks show and little is saved; what does not fit at this quality is stored too large.
    static let floor = 30

    /// Bisects the qualities from ``floor`` to below `quality`, so `make` is called seven times at most.
    ///
    /// A lower quality is taken to make no larger image. Where that does not hold, the result still fits,
    /// and the same source has always the same.
    ///
    /// - Parameters:
    ///   - quality: 1…100; at ``floor`` and below nothing is tried.
    ///   - make: the image at a quality; nil when it does not fit.
    /// - Returns: the image of the best quality for which `make` has one, nil when it has none.
    /// - Throws: what `make` throws.
    static func best<Image>(
        below quality: Int, _ make: (Int) throws(CodecError) -> Image?
    ) throws(CodecError) -> Image? {
        var (low, high) = (floor, quality - 1)
        var best: Image?
        while low <= high {
            let middle = (low + high) / 2
            if let image = try make(middle) {
                best = image
                low = middle + 1
            } else {
                high = middle - 1
            }
        }
        return best
    }
}
