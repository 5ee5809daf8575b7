internal import PrefetchModel

/// Upper estimates, in bytes, of the memory for reading a format, without the source itself.
struct DecodingMemory: Sendable {
    /// Making one result.
    let result: @Sendable (_ header: ImageHeader, _ recipe: Recipe) -> MemoryEstimate
    /// ``CheckDepth/structure`` within a budget.
    let structure: @Sendable (_ header: ImageHeader, _ budget: Int) -> Int
    /// ``CheckDepth/pixels`` within a budget, for the recipe `original`.
    let verification: @Sendable (_ header: ImageHeader, _ recipe: Recipe, _ budget: Int) -> Int

    /// `verification` is by default the peak of `result`.
    init(
        result: @escaping @Sendable (ImageHeader, Recipe) -> MemoryEstimate,
        structure: @escaping @Sendable (ImageHeader, Int) -> Int = { _, _ in 0 },
        verification: (@Sendable (ImageHeader, Recipe, Int) -> Int)? = nil
    ) {
        self.result = result
        self.structure = structure
        self.verification =
            verification ?? { header, recipe, _ in result(header, recipe).peak.count }
    }

    /// A format whose decoder allocates ``ImageHeader/libraryBytes`` in addition to the rows.
    static func decoded(
        structure: @escaping @Sendable (ImageHeader) -> Int = { _ in 0 }
    ) -> DecodingMemory {
        DecodingMemory(
            result: { EstimateBasis($0, $1).ofDecoded },
            structure: { header, _ in structure(header) })
    }
}
