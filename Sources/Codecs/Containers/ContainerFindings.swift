package import PrefetchModel

/// What the container of a file alone says of it, also of a format that this build decodes and another one does not.
package struct ContainerFindings: Sendable {
    /// Nil where the bytes do not say it at a known place.
    package let size: (width: Int, height: Int)?
    /// What the check was allowed to allocate.
    package let memoryBytes: Int

    /// Follows the structure to its end; nil for a format that has no container of its own.
    ///
    /// - Parameters:
    ///   - source: the whole file, which begins as files of that format do.
    ///   - format: of which the container is followed.
    ///   - limits: of which the time holds.
    ///   - memoryBytes: as much as the check may allocate, at most what it asks for.
    /// - Throws: what is wrong with the file, or `limitExceeded`.
    package init?(
        of source: UnsafeRawBufferPointer, as format: ImageFormat,
        limits: CodecLimits = CodecLimits(),
        memoryBytes: Int = .max
    ) throws(CodecError) {
        guard let container = format.container else { return nil }
        self.memoryBytes = min(memoryBytes, container.memoryBytes(ofSource: source.count))
        size =
            if case .known(let width, let height) = container.size(in: source) {
                (width, height)
            } else {
                nil
            }
        try container.check(source, memoryBytes: self.memoryBytes, Interruption(limits, nil))
    }
}
