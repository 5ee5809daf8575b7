/// Limits on the resources of one image. All are checked before memory is allocated for it.
package struct CodecLimits: Hashable, Sendable {
    /// Width × height.
    package var maximumPixels: Int
    /// Scans of a JPEG. Encoders write about ten. Each costs a pass over all blocks, so a small
    /// file with thousands of empty scans could occupy a core for minutes.
    package var maximumScans = 100
    /// Warnings that lose no pixels. A warning that may have lost some is a failure.
    package var maximumWarnings = 100
    /// The size of an unpacked ICC profile. The largest in use are about 3 MB, for printing
    /// presses.
    static let maximumMetadataBytes = 4 << 20
    /// The most memory that libjpeg may use for coefficients, a safeguard if the estimate from the
    /// header is too low. Zero means no limit.
    package var maximumLibraryBytes = 2 << 30

    /// Processor time for one image, from decoding its first byte to encoding its last.
    package var maximumTime: Duration

    /// The maximum number of marker segments before a JPEG's first scan, or of chunks in a PNG.
    /// Each is recorded in memory before any budget is checked.
    static let maximumPieces = 50_000

    /// The unpacked bytes of all frames of an animation, for each of ``maximumPixels``.
    ///
    /// Single-colour PNG frames decode at 490 MB/s in every pixel format: 2.5 s for 1.2 GB.
    /// The largest still image takes 1.6 s. The limit is 400 million pixels of three bytes: 192
    /// frames of 1920×1080.
    static let frameBytesPerPixel = 12

    package init(maximumPixels: Int = 100_000_000, maximumTime: Duration = .seconds(30)) {
        self.maximumPixels = maximumPixels
        self.maximumTime = maximumTime
    }
}

/// Sums the unpacked bytes of an animation's frames.
struct FrameBudget {
    private let most: Int
    private var rest: Int

    init(_ limits: CodecLimits) {
        let (product, overflows) = limits.maximumPixels.multipliedReportingOverflow(
            by: CodecLimits.frameBytesPerPixel)
        most = overflows ? .max : product
        rest = most
    }

    mutating func take(_ bytes: ByteEstimate) throws(CodecError) {
        guard bytes.count <= rest else {
            throw .tooManyPixels(
                "an animation with frames that unpack to more than \(most) bytes, "
                    + "\(CodecLimits.frameBytesPerPixel) for each of --max-pixels")
        }
        rest -= bytes.count
    }
}
