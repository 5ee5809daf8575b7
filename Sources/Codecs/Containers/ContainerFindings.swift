package import PrefetchModel

/// The size and integrity of a file as its container states them, without decoding. Works the same
/// in builds that can decode the format.
package struct ContainerFindings: Sendable {
    /// The size in pixels before orientation; nil if it is not at a known place.
    package let size: (width: Int, height: Int)?
    /// An EXIF value, 1…8.
    package let orientation: Int
    /// The memory that the check was allowed to allocate.
    package let memoryBytes: Int

    /// Follows the structure to its end. Returns nil for a format without a container parser.
    ///
    /// - Parameters:
    ///   - source: the whole file, with the signature of `format`.
    ///   - format: the format of the container.
    ///   - limits: only the time limit applies.
    ///   - memoryBytes: the most that the check may allocate; capped at the amount that the
    ///     container reports.
    /// - Throws: `corrupt` for a damaged file, `limitExceeded`, `cancelled`.
    package init?(
        of source: UnsafeRawBufferPointer, as format: ImageFormat,
        limits: CodecLimits = CodecLimits(), memoryBytes: Int = .max
    ) throws(CodecError) {
        guard let container = format.container else { return nil }
        self.memoryBytes = min(memoryBytes, container.memoryBytes(ofSource: source.count))
        size =
            if case .known(let width, let height) = container.size(in: source) {
                (width, height)
            } else {
                nil
            }
        orientation = container.orientation(in: source)
        _ = try container.check(source, memoryBytes: self.memoryBytes, Interruption(limits, nil))
    }
}
