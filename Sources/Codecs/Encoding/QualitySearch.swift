internal import PrefetchModel

/// Finds the quality at which an image fits into a number of bytes.
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

    /// An image of the recipe's quality, or of the one that its largest size asks for.
    ///
    /// `make` gives the image at a quality; nil when it has more bytes than it may have.
    ///
    /// - Returns: what is larger than the recipe's largest size where no quality is low enough.
    /// - Throws: what `make` throws, and `encodingFailed`.
    static func fitting(
        _ recipe: Recipe, _ make: (_ quality: Int, _ most: Int) throws(CodecError) -> ImageBytes?
    ) throws(CodecError) -> ImageBytes {
        guard let made = try make(recipe.quality, .max / 4) else {
            throw .encodingFailed("no output")
        }
        guard let most = recipe.maximumStoredBytes, made.count > most else { return made }
        let fitting = try best(below: recipe.quality) { quality throws(CodecError) in
            try make(quality, most)
        }
        if let fitting { return fitting }
        guard recipe.quality > floor else { return made }
        return try make(floor, made.count) ?? made
    }
}
