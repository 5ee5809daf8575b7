internal import PrefetchModel

enum QualitySearch {
    /// The lowest quality tried. Below it, block artefacts show and little is saved; an image that
    /// does not fit at this quality is stored above the limit.
    static let floor = 30

    /// Bisects the qualities from ``floor`` up to, but not including, `quality`. Calls `make` at
    /// most seven times.
    ///
    /// Assumes that a lower quality makes no larger image. If that is not so, the result still fits
    /// and is deterministic.
    ///
    /// `make` returns nil for an image that does not fit.
    ///
    /// - Returns: the best image that fits; nil if none does.
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

    /// Encodes at the recipe's quality, or at the best lower one that fits its size limit.
    ///
    /// `make` encodes the image at a quality; it returns nil if the result exceeds `most` bytes.
    ///
    /// - Returns: an image above the limit if no quality is low enough.
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
