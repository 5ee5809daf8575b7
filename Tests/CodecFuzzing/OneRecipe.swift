package import Codecs
package import PrefetchModel

/// Processes a single recipe.
package func process(
    _ source: UnsafeRawBufferPointer, header: ImageHeader, recipe: Recipe,
    limits: CodecLimits = CodecLimits(), cancellation: Cancellation? = nil
) throws(CodecError) -> ProcessedImage {
    try ImageProcessor.process(
        source, header: header, recipes: [recipe], limits: limits, cancellation: cancellation
    ).results[0].get()
}

/// The unchanged source, after a check of its structure.
package func checkedStructure(
    of source: UnsafeRawBufferPointer, header: ImageHeader, limits: CodecLimits = CodecLimits(),
    memoryBytes: Int = .max, cancellation: Cancellation? = nil
) throws(CodecError) -> ProcessedImage {
    try ImageProcessor.process(
        source, header: header, recipes: [Recipe(encoding: .original)], limits: limits,
        check: .structure, memoryBytes: memoryBytes, cancellation: cancellation
    ).results[0].get()
}
