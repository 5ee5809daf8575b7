/// What of an ICC profile (ICC.1:2022, section 7.2) is looked at: its size and its colour space.
enum ICCProfile {
    static let headerBytes = 128

    /// Whether the profile is as long as it says and carries the signature `acsp`.
    static func isWhole(_ profile: [UInt8]) -> Bool {
        guard profile.count >= headerBytes else { return false }
        return profile.withUnsafeBytes {
            $0.bigEndian32(at: 0) == profile.count && $0.holds("acsp", at: 36)
        }
    }

    /// Whether the profile describes pixels with this many channels: 1 grey, 3 RGB.
    static func fits(_ profile: [UInt8], channels: Int) -> Bool {
        isWhole(profile)
            && profile.withUnsafeBytes { $0.holds(channels == 1 ? "GRAY" : "RGB ", at: 16) }
    }
}
