import PrefetchModel

/// A content file, as the row of a variant names it.
struct NamedFile: Hashable {
    let digest: ContentDigest
    let bytes: Int
    /// Nil for an unknown format, and thus file name.
    let format: ImageFormat?
}

/// The result of removing a batch of images.
struct RemovedRows {
    /// Files that no row names any more, each once, in the order of their folders.
    var files: [NamedFile] = []
    var variants = 0
    /// The number of images without a remaining variant.
    var wholeImages = 0
    /// The images that lost any variant.
    var gone = ResourceSet()
    /// Keys of completely removed images that had a partial download.
    var keysOfParts: [String] = []
}
