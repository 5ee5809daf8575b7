internal import CPNG
internal import Glibc
internal import PrefetchModel

/// The meaning of a raster's samples.
struct ColourDescription {
    /// The palette, and the one transparent colour.
    var samples = cpng_colours()
    /// The ICC profile to store with the samples; nil for sRGB. See ``ColourHandling``.
    var profile: [UInt8]?

    func hasTransparentColours(isIndexed: Bool) -> Bool {
        guard isIndexed else { return samples.has_key }
        return withUnsafeBytes(of: samples.palette) { palette in
            palette.bindMemory(to: UInt32.self).contains { $0 & 255 != 255 }
        }
    }
}

/// The abilities of a result.
struct ColourTarget {
    let stripping: Recipe.Stripping
    /// Whether grey pixels stay grey, and their profile can be stored.
    let carriesGreyProfiles: Bool
    /// Whether samples keep the meaning that a profile of colours gives them: no step adds sRGB
    /// colours, and they are not grey.
    let carriesColourProfiles: Bool
    /// Whether samples of 16 bits stay so.
    let carriesDepth: Bool
    /// Whether samples of more bits become samples of 8.
    let losesDepth: Bool

    /// The pixels of a recipe in a format, after the steps; `format` is nil for the frames of an
    /// animation, which are stored as colours.
    init(
        _ recipe: Recipe, as format: EncodedFormat?, of header: ImageHeader,
        after steps: TransformationPlan?
    ) {
        let isOpaque = header.format == .jpeg && !recipe.addsAlpha
        stripping = recipe.stripping
        let encoders =
            switch format {
            case .encoded(let format): [format.encoder]
            case .smallest: recipe.allowedFormats.map(\.encoder)
            case .container, nil: [ImageEncoder?]()
            }
        let keepsMeaning = steps?.usesColours != true
        carriesColourProfiles = keepsMeaning && !header.isGrey
        carriesDepth = steps == nil && format == .encoded(.png)
        losesDepth = header.bitDepth > 8 && !carriesDepth
        carriesGreyProfiles =
            format != nil && keepsMeaning
            && encoders.compactMap(\.self).allSatisfy { encoder in
                // Transparent grey over a colour becomes colour.
                encoder.carriesGreyProfiles
                    && (encoder.hasAlpha || isOpaque || recipe.background.isGrey)
            }
    }
}

/// A conversion of samples to sRGB.
enum ColourConversion: Equatable {
    case space(RGBSpace)
    /// By Little CMS; to 8 bits unless samples of 16 bits keep their depth.
    case profile([UInt8], keepsDepth: Bool)
}

/// The rule, for all formats, on the colours of encoded pixels.
///
/// A target keeps a profile that it can hold. Colours that it cannot hold become sRGB, which needs
/// no profile.
struct ColourHandling {
    let treatment: ColourTreatment
    /// Nil where samples keep their values, and where the decoder has converted them.
    private(set) var conversion: ColourConversion?
    /// The profile to store.
    private(set) var profile: [UInt8]?

    /// - Throws: `unsupported` for colours that cannot be converted, on this system or at all.
    init(of colours: SourceColours, in target: ColourTarget) throws(CodecError) {
        switch colours {
        case .undeclared: treatment = .assumedSRGB
        case .sRGB(let profile):
            treatment = .kept
            if target.stripping == .none, let profile, target.carries(profile) {
                self.profile = profile
            }
        case .profile(let profile):
            if target.stripping != .all, target.carries(profile) {
                treatment = .kept
                self.profile = profile
            } else if try ColourTransforms.isUsable(profile) {
                treatment = .converted
                conversion = .profile(profile, keepsDepth: target.carriesDepth)
            } else {
                treatment = .assumedSRGB
            }
        case .space(let space):
            treatment = space.isOfHighDynamicRange ? .toneMapped : .converted
            conversion = .space(space)
        case .inks(let profile):
            treatment = .converted
            // Says that the library is missing before anything is decoded.
            if let profile { _ = try ColourTransforms.isUsable(profile) }
        case .unconvertible(let text): throw .unsupported(text)
        }
    }
}

extension ColourTarget {
    fileprivate func carries(_ profile: [UInt8]) -> Bool {
        guard ICCProfile.hasReadableColorants(profile),
            !losesDepth || !ICCProfile.isCoarseInBytes(profile)
        else { return false }
        return ICCProfile.fits(profile, channels: 3)
            ? carriesColourProfiles : carriesGreyProfiles
    }
}

extension Raster {
    /// Converts the samples to sRGB. Alpha stays, and so do palettes, with converted entries.
    consuming func converted(
        by conversion: ColourConversion, _ interruption: Interruption
    ) throws(CodecError) -> Raster {
        if isIndexed {
            var raster = self
            try raster.colour.convertPalette(by: conversion, interruption)
            return raster
        }
        switch conversion {
        case .space(let space):
            var raster =
                bitDepth < 8 || alpha == .byColour ? try plain(interruption) : self
            try raster.convertToSRGB(from: space, interruption)
            return raster
        case .profile(let profile, let keepsDepth):
            let isGrey = ICCProfile.fits(profile, channels: 1)
            let isDeep = keepsDepth && bitDepth == 16 && alpha != .byColour
            let isPrepared = (isPlain || isDeep) && (isGrey || channels >= 3)
            var raster =
                isPrepared ? self : try plain(hasColour: !isGrey, interruption)
            try raster.convertToSRGB(from: profile, interruption)
            return raster
        }
    }

    /// Sets the profile to store. Pixels become grey or colour as the profile describes them.
    consuming func described(
        by profile: [UInt8]?, _ interruption: Interruption
    ) throws(CodecError) -> Raster {
        guard let profile, !isIndexed else {
            var raster = self
            raster.colour.profile = profile
            return raster
        }
        let isGrey = ICCProfile.fits(profile, channels: 1)
        var raster = !isGrey && channels < 3 ? try plain(hasColour: true, interruption) : self
        if isGrey, raster.channels >= 3 {
            cpng_drop_channels(&raster.rows, true, false)
            try interruption.check()
        }
        raster.colour.profile = profile
        return raster
    }
}

extension ColourDescription {
    fileprivate mutating func convertPalette(
        by conversion: ColourConversion, _ interruption: Interruption
    ) throws(CodecError) {
        let count = MemoryLayout.size(ofValue: samples.palette) / 4
        guard let memory = malloc(4 * count + 1) else {
            throw .outOfMemory("no memory for a palette")
        }
        let bytes = memory.assumingMemoryBound(to: UInt8.self)
        let raster = Raster(owning: cpng_image_of(bytes, UInt32(count), 1, 4, nil))
        withUnsafeBytes(of: samples.palette) { palette in
            for (index, colour) in palette.bindMemory(to: UInt32.self).enumerated() {
                memory.storeBytes(
                    of: colour.bigEndian, toByteOffset: 1 + 4 * index, as: UInt32.self)
            }
        }
        let converted = try raster.converted(by: conversion, interruption)
        guard let rows = converted.rows.rows else { return }
        withExtendedLifetime(converted) {
            withUnsafeMutableBytes(of: &samples.palette) { palette in
                for index in 0..<count {
                    let stored = UnsafeRawPointer(rows).loadUnaligned(
                        fromByteOffset: 1 + 4 * index, as: UInt32.self)
                    palette.storeBytes(
                        of: UInt32(bigEndian: stored), toByteOffset: 4 * index, as: UInt32.self)
                }
            }
        }
    }
}

/// The colours that a file declares for its samples.
enum SourceColours: Equatable {
    /// None, or nothing valid.
    case undeclared
    /// sRGB, in words or by a profile equivalent to it.
    case sRGB(profile: [UInt8]?)
    /// Another profile, of the kind of the pixels.
    case profile([UInt8])
    /// Primaries and a curve, which only the file's own format holds.
    case space(RGBSpace)
    /// Inks (CMYK), which the decoder converts to sRGB; by a profile, if there is one.
    case inks(profile: [UInt8]?)
    /// Neither a profile describes them nor a conversion; the text is the reason.
    case unconvertible(String)

    var areOfHighDynamicRange: Bool {
        if case .space(let space) = self { space.isOfHighDynamicRange } else { false }
    }

    /// The colours of a profile that fits the pixels.
    init(_ profile: [UInt8]?) {
        guard let profile else {
            self = .undeclared
            return
        }
        self = ICCProfile.isSRGB(profile) ? .sRGB(profile: profile) : .profile(profile)
    }
}
