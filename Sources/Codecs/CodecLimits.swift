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

    /// How many bytes all frames of an animation together may have, unpacked, for each of ``maximumPixels``.
    ///
    /// A PNG's frames of one colour are decoded at 490 MB/s, whatever a pixel has, so 1.2 GB take 2.5 s; the largest
    /// static image takes 1.6 s. That is 400 million pixels of three bytes: a film of 192 pictures of 1920×1080.
    static let frameBytesPerPixel = 12

    package init() {}

    /// - Parameters:
    ///   - maximumPixels: Width times height.
    ///   - maximumTime: See ``maximumTime``.
    package init(maximumPixels: Int, maximumTime: Duration = .seconds(30)) {
        self.maximumPixels = maximumPixels
        self.maximumTime = maximumTime
    }
}

/// Counts what the frames of an animation unpack to.
struct FrameBudget {
    private let most: Int
    private var rest: Int

    init(_ limits: CodecLimits) {
        let (product, overflows) = limits.maximumPixels.multipliedReportingOverflow(
            by: CodecLimits.frameBytesPerPixel)
        most = overflows ? .max : product
        rest = most
    }

    /// - Throws: `tooManyPixels` when this frame passes the limit.
    mutating func take(_ bytes: ByteEstimate) throws(CodecError) {
        guard bytes.count <= rest else {
            throw .tooManyPixels(
                "an animation whose frames unpack to more than \(most) bytes, "
                    + "\(CodecLimits.frameBytesPerPixel) for each of --max-pixels")
        }
        rest -= bytes.count
    }
}
