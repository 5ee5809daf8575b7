internal import CColour
internal import CPNG
internal import Synchronization

/// Little CMS as loaded.
enum LittleCMS {
    /// Loads it. The reason that it cannot be loaded; nil on success.
    static var missing: String? {
        ccolour_load().map { "\(String(cString: $0)); Debian's package is liblcms2-2" }
    }

    /// For example `2.14`; nil if it cannot be loaded.
    static var version: String? {
        let number = Int(ccolour_library_version())
        return number == 0 ? nil : "\(number / 1000).\(number % 1000 / 10)"
    }
}

/// A conversion from a profile to sRGB by Little CMS.
///
/// `@unchecked Sendable` holds because the library only reads a transform while it converts, and
/// only `deinit` frees it.
final class ColourTransform: @unchecked Sendable {
    let pointer: OpaquePointer

    fileprivate init(owning pointer: OpaquePointer) {
        self.pointer = pointer
    }

    deinit { ccolour_free(pointer) }

    fileprivate func convert(_ row: UnsafeMutablePointer<UInt8>, channels: Int, count: Int) {
        ccolour_convert(pointer, CCOLOUR_FASTEST, Int32(channels), row, row, count)
    }
}

/// The transforms in use lately. Making one takes longer than a small picture.
enum ColourTransforms {
    private struct KnownTransform {
        let pixels: ccolour_pixels
        /// Nil for a broken profile.
        let transform: ColourTransform?
    }

    /// Most transforms take 20 kB, a transform of inks 0.6 MB. If the profile has tables, it may be
    /// three times the size of the profile.
    private static let known = Mutex(RecentProfiles<KnownTransform>())

    /// Whether Little CMS converts by the profile.
    ///
    /// - Throws: `unsupported` without the library.
    static func isUsable(_ profile: [UInt8]) throws(CodecError) -> Bool {
        guard let pixels = ICCProfile.pixels(of: profile) else { return false }
        return try transform(from: profile, pixels) != nil
    }

    /// The transform for pixels of this kind; nil if Little CMS makes none.
    static func transform(
        from profile: [UInt8], _ pixels: ccolour_pixels
    ) throws(CodecError) -> ColourTransform? {
        let found = known.withLock { $0.value(of: profile) { $0.pixels == pixels } }
        if let found { return found.transform }
        guard ICCProfile.isConvertible(profile) else { return nil }
        var made: OpaquePointer?
        if ccolour_make(profile, profile.count, pixels, &made) == CCOLOUR_NO_LIBRARY {
            throw .unsupported(
                "its colour profile needs Little CMS, which cannot be loaded: "
                    + (LittleCMS.missing ?? ""))
        }
        // Two threads may make the same one; the second stays.
        let transform = made.map(ColourTransform.init(owning:))
        known.withLock { $0.add(.init(pixels: pixels, transform: transform), of: profile) }
        return transform
    }
}

/// Values of a few profiles, the least recently used first.
struct RecentProfiles<Value> {
    private static var mostEntries: Int { 8 }
    private static var mostProfileBytes: Int { 4 << 20 }

    private var entries: [(profile: [UInt8], value: Value)] = []

    mutating func value(of profile: [UInt8], where isWanted: (Value) -> Bool) -> Value? {
        let place = entries.lastIndex { isWanted($0.value) && $0.profile == profile }
        guard let place else { return nil }
        let entry = entries.remove(at: place)
        entries.append(entry)
        return entry.value
    }

    mutating func add(_ value: Value, of profile: [UInt8]) {
        entries.append((profile, value))
        while entries.count > Self.mostEntries
            || entries.count > 1
                && entries.reduce(0, { $0 + $1.profile.count }) > Self.mostProfileBytes
        {
            entries.removeFirst()
        }
    }
}

extension ICCProfile {
    /// The most tags of a profile; Little CMS has the same limit.
    private static let mostTags = 100

    /// The kind of pixels that the profile describes; nil for a kind that pictures do not have.
    fileprivate static func pixels(of profile: [UInt8]) -> ccolour_pixels? {
        switch space(of: profile) {
        case .grey: CCOLOUR_GREY
        case .rgb: CCOLOUR_RGB
        case .cmyk: CCOLOUR_INKS
        case nil: nil
        }
    }

    /// Whether Little CMS is given the profile: a device's (section 7.2.5) with few tags, all
    /// within the profile.
    fileprivate static func isConvertible(_ profile: [UInt8]) -> Bool {
        guard profile.count <= CodecLimits.maximumMetadataBytes, space(of: profile) != nil else {
            return false
        }
        let classes: [StaticString] = ["scnr", "mntr", "prtr", "spac"]
        return profile.withUnsafeBytes { bytes in
            classes.contains { bytes.holds($0, at: 12) }
                && (bytes.holds("XYZ ", at: 20) || bytes.holds("Lab ", at: 20))
                && (tags(of: bytes)?.count).map { $0 <= mostTags } ?? false
        }
    }
}

extension Raster {
    /// Converts the samples in place by a profile that fits them: 8 or 16 bits, without a palette.
    mutating func convertToSRGB(
        from profile: [UInt8], _ interruption: Interruption
    ) throws(CodecError) {
        precondition(bitDepth >= 8 && !isIndexed && alpha != .byColour)
        let isGrey = ICCProfile.fits(profile, channels: 1)
        let pixels =
            bitDepth == 16
            ? isGrey ? CCOLOUR_DEEP_GREY : CCOLOUR_DEEP_RGB : isGrey ? CCOLOUR_GREY : CCOLOUR_RGB
        let (width, channels, stride) = (widthInPixels, channels, stride)
        guard let start = rows.rows, isGrey || channels >= 3,
            let made = try ColourTransforms.transform(from: profile, pixels)
        else { return }
        for y in 0..<heightInPixels {
            try interruption.check(after: stride)
            made.convert(start + y * stride + 1, channels: channels, count: width)
        }
    }
}
