internal import CPNG
internal import PrefetchModel

/// The meaning of a raster's samples.
struct ColourDescription {
    /// The palette, and the one transparent colour.
    var samples = cpng_colours()
    /// The ICC profile of the colour space; nil for sRGB.
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

    /// The profile to store with pixels of `channels` channels. An sRGB profile is dropped, since
    /// sRGB is the default.
    func profile(keptBy stripping: Recipe.Stripping, channels: Int) -> [UInt8]? {
        guard stripping != .all, let profile, stripping == .none || !ICCProfile.isSRGB(profile),
            ICCProfile.fits(profile, channels: channels)
        else { return nil }
        return profile
    }
}
