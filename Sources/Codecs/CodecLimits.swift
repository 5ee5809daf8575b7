/// How much a single image may ask of the codecs. All are checked before memory is allocated for it.
package struct CodecLimits: Hashable, Sendable {
    /// Width times height.
    package var maximumPixels = 100_000_000
    /// Scans of a JPEG. Encoders write about ten; each costs a pass over all blocks, so a small
    /// file of thousands of empty ones would keep a core busy for minutes.
    package var maximumScans = 100
    /// Warnings that cost no pixel. Any that may have cost one is a failure at once.
    package var maximumWarnings = 100
    /// An ICC profile, unpacked. The largest in use, of printing presses, have about 3 MB.
    package var maximumMetadataBytes = 4 << 20
    /// What libjpeg may allocate for coefficients, beyond the estimate made from the header: a second line,
    /// should the estimate be wrong. Zero for no limit.
    package var maximumLibraryBytes = 2 << 30

    /// Processor time for one image, from its first byte decoded to its last one encoded.
    package var maximumTime: Duration = .seconds(30)

    /// The most marker segments before a JPEG's first scan, or chunks of a PNG: each is noted in
    /// memory before any budget is asked.
    static let maximumPieces = 50_000

    package init() {}

    /// - Parameters:
    ///   - maximumPixels: Width times height.
    ///   - maximumTime: See ``maximumTime``.
    package init(maximumPixels: Int, maximumTime: Duration = .seconds(30)) {
        self.maximumPixels = maximumPixels
        self.maximumTime = maximumTime
    }
}
