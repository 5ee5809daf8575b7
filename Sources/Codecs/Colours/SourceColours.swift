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

    /// The colours of a profile that fits the pixels.
    init(_ profile: [UInt8]?) {
        guard let profile else {
            self = .undeclared
            return
        }
        self = ICCProfile.isSRGB(profile) ? .sRGB(profile: profile) : .profile(profile)
    }
}
