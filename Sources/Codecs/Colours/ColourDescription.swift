internal import CPNG

/// The meaning of a raster's samples.
struct ColourDescription {
    /// The palette, and the one transparent colour.
    var samples = cpng_colours()
    /// The ICC profile to store with the samples; nil for sRGB. See ``ColourHandling``.
    var profile: [UInt8]?

    init(profile: [UInt8]? = nil) {
        self.profile = profile
    }

    func hasTransparentColours(isIndexed: Bool) -> Bool {
        guard isIndexed else { return samples.has_key }
        return withUnsafeBytes(of: samples.palette) { palette in
            palette.bindMemory(to: UInt32.self).contains { $0 & 255 != 255 }
        }
    }
}
