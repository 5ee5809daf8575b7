package import PrefetchModel

package struct ProcessedEntry: Sendable {
    package let source: ImageDescription
    /// Whether pixels or coefficients were decoded, beyond following the structure.
    package let isDecoded: Bool
    /// Processor time for all results that were made.
    package let decodeDuration: Duration
    package let encodeDuration: Duration
    /// One for each recipe, in their order. A failure does not affect the others.
    package let results: [Result<ProcessedImage, CodecError>]
    /// Nil unless requested, and unless a result was made of decoded pixels or coefficients.
    package let placeholder: Placeholder?
    /// Faults of the source that lose no pixel, and losses that the pixels do not show.
    package let warning: ImageWarning?

    package init(
        source: ImageDescription, isDecoded: Bool, decodeDuration: Duration,
        encodeDuration: Duration, results: [Result<ProcessedImage, CodecError>],
        placeholder: Placeholder?, warning: ImageWarning?
    ) {
        self.source = source
        self.isDecoded = isDecoded
        self.decodeDuration = decodeDuration
        self.encodeDuration = encodeDuration
        self.results = results
        self.placeholder = placeholder
        self.warning = warning
    }
}

/// The format of an image, and its size as displayed, with the orientation applied; 0 if unknown.
package struct ImageDescription: Hashable, Sendable {
    package let format: ImageFormat
    package let widthInPixels: Int
    package let heightInPixels: Int

    package init(format: ImageFormat, widthInPixels: Int, heightInPixels: Int) {
        self.format = format
        self.widthInPixels = widthInPixels
        self.heightInPixels = heightInPixels
    }

    package init(_ header: ImageHeader) {
        format = header.format
        (widthInPixels, heightInPixels) = header.displayedSize
    }
}

extension ProcessedEntry {
    package init(header: ImageHeader, placeholder: Placeholder) {
        self.init(
            source: ImageDescription(header), isDecoded: true, decodeDuration: .zero,
            encodeDuration: .zero, results: [], placeholder: placeholder, warning: nil)
    }

    /// A single result that was refused beforehand.
    package init(header: ImageHeader, refusing error: CodecError) {
        self.init(
            source: ImageDescription(header), isDecoded: false, decodeDuration: .zero,
            encodeDuration: .zero,
            results: [.failure(error)], placeholder: nil, warning: nil)
    }

    /// Joins results of the same image that were made one after the other.
    package init(header: ImageHeader, joining entries: [ProcessedEntry]) {
        self.init(
            source: ImageDescription(header), isDecoded: entries.contains(where: \.isDecoded),
            decodeDuration: entries.reduce(.zero) { $0 + $1.decodeDuration },
            encodeDuration: entries.reduce(.zero) { $0 + $1.encodeDuration },
            results: entries.flatMap(\.results),
            placeholder: entries.lazy.compactMap(\.placeholder).first,
            warning: ImageWarning(joining: entries.compactMap(\.warning)))
    }
}

/// Decodes an image and makes the results of recipes: a pure function, of values to values.
///
/// Within one format, a result is replaced by the source without its metadata if that is no larger,
/// unless the recipe keeps larger results. A conversion to another format is made at any size.
package enum ImageProcessor {
    /// Makes a result for each recipe. Shared rasters are decoded once, and each result has the
    /// same bytes as if made alone.
    ///
    /// Synchronous, without shared state; any number of threads may call it. It allocates
    /// at most about ``memoryNeed(of:for:check:within:)``. Everything that is decoded is decoded to
    /// its end, so damage is found.
    ///
    /// - Parameters:
    ///   - source: The whole file.
    ///   - header: The header of the same bytes.
    ///   - recipes: Any number. Recipes with the same effect on this format share one result.
    ///   - limits: The time limit applies to each recipe; shared decoding counts for the first.
    ///   - check: For sources that are stored unchanged. ``SourceCheck/structure`` accepts
    ///     everything that ``SourceCheck/decode`` accepts. In a JPEG it misses flipped bits in
    ///     entropy-coded data, and nonsense of valid form. A PNG has checksums, and its image data
    ///     is inflated; it misses only symbols that no encoder makes (RFC 1951 section 3.2.6
    ///     reserves them), which libdeflate accepts and zlib does not.
    ///   - memoryBytes: The reservation, from ``memoryNeed(of:for:check:within:)``. Checks of
    ///     unchanged sources take a faster way if it suffices.
    ///   - overlays: The pictures of `overlay` steps; a recipe with another one fails.
    ///   - wantsPlaceholder: Whether to make one of data that is decoded for results; nothing is
    ///     decoded for it. A transparent image is shown over a background if all results are.
    ///   - cancellation: Ends the work within a few tenths of a second. The exception is a PNG made
    ///     to inflate slowly: libdeflate cannot be interrupted, and 8 MiB took up to two seconds.
    /// - Returns: A result for each recipe.
    /// - Throws: `cancelled`, and errors that concern the whole file.
    package static func process(
        _ source: UnsafeRawBufferPointer, header: ImageHeader, recipes: [Recipe],
        limits: CodecLimits = CodecLimits(), check: SourceCheck = .decode,
        memoryBytes: Int = .max, overlays: Overlays = Overlays(), wantsPlaceholder: Bool = false,
        cancellation: Cancellation? = nil
    ) throws(CodecError) -> ProcessedEntry {
        guard let codec = header.codec else {
            return try storedAsItCame(
                source, header, recipes.count, memoryBytes, Interruption(limits, cancellation))
        }
        let distinct = DistinctRecipes(recipes, of: header)
        let planned = distinct.recipes.map {
            PlannedRecipe(header.settled($0, within: memoryBytes), of: header)
        }
        let allowed = planned.map { planned in
            Result { () throws(CodecError) in try header.checkPixels(planned.steps, limits) }
        }
        var work = EntryWork(
            EntryPlan(
                bytes: source, source: try codec.open(source, header, limits), codec: codec,
                header: header),
            recipes: zip(planned, allowed).filter { (try? $0.1.get()) != nil }.map(\.0),
            check: check, memoryBytes: memoryBytes, overlays: overlays,
            wantsPlaceholder: wantsPlaceholder)
        // Results of the largest raster are made first, so it is freed first. Unchanged
        // sources are last, since decoding for a result also verifies the source.
        let places = DecodingScale.allCases.flatMap { scale in
            planned.indices.filter { planned[$0].scale == scale }
        }
        let made = places.filter { planned[$0].recipe.encoding != .original }
        let originals = places.filter { planned[$0].recipe.encoding == .original }
        var results: [Int: Result<ProcessedImage, CodecError>] = [:]
        for place in made + originals {
            let interruption = Interruption(limits, cancellation)
            let result = Result { () throws(CodecError) in
                try allowed[place].get()
                return try work.result(of: planned[place], interruption)
            }
            if case .failure(.cancelled) = result { throw .cancelled }
            results[place] = result
        }
        let images = results.values.compactMap { try? $0.get() }
        return ProcessedEntry(
            source: ImageDescription(header), isDecoded: work.isDecoded,
            decodeDuration: images.reduce(.zero) { $0 + $1.decodeDuration },
            encodeDuration: images.reduce(.zero) { $0 + $1.encodeDuration },
            results: distinct.places.compactMap { results[$0] },
            placeholder: images.isEmpty ? nil : work.placeholder, warning: work.warning)
    }

    /// The result for a format that is not decoded, by any recipe: the source's bytes, if its
    /// container is whole.
    private static func storedAsItCame(
        _ source: UnsafeRawBufferPointer, _ header: ImageHeader, _ count: Int, _ memoryBytes: Int,
        _ interruption: Interruption
    ) throws(CodecError) -> ProcessedEntry {
        guard let container = header.format.container else {
            throw .unsupported("\(header.format.rawValue) is not decoded")
        }
        let warning = try container.check(
            source, memoryBytes: min(memoryBytes, container.memoryBytes(ofSource: source.count)),
            interruption)
        let image = ProcessedImage(
            keeping: header, as: .source, isDecoded: false, decodeDuration: .zero,
            encodeDuration: .zero)
        return ProcessedEntry(
            source: ImageDescription(header), isDecoded: false, decodeDuration: .zero,
            encodeDuration: .zero,
            results: Array(repeating: .success(image), count: count), placeholder: nil,
            warning: warning)
    }

    /// Upper estimate, in bytes, for
    /// ``process(_:header:recipes:limits:check:memoryBytes:cancellation:)`` within a budget,
    /// without the source. `Int.max` for an uncountable size.
    package static func memoryNeed(
        of header: ImageHeader, for recipes: [Recipe], check: SourceCheck = .decode,
        within budget: Int
    ) -> Int {
        guard header.codec != nil else { return header.structureMemoryBytes(within: budget) }
        let recipes = DistinctRecipes(recipes, of: header).recipes.map {
            header.settled($0, within: budget)
        }
        var (peak, results) = (ByteEstimate(0), ByteEstimate(0))
        var rasters: [DecodingScale: ByteEstimate] = [:]
        for recipe in recipes {
            if recipe.encoding == .original {
                let need =
                    switch check {
                    case .decode: header.verificationMemoryBytes(for: recipe, within: budget)
                    case .structure: header.structureMemoryBytes(within: budget)
                    }
                peak = max(peak, ByteEstimate(need))
                continue
            }
            let estimate = header.estimate(for: recipe)
            peak = max(peak, estimate.peak)
            results = results + estimate.result
            let scale = PlannedRecipe(recipe, of: header).scale
            rasters[scale] = max(rasters[scale, default: 0], estimate.raster)
        }
        // A single result is within its own peak. With several, the finished ones are kept, and
        // their shared pixels of all scales.
        return recipes.count > 1
            ? rasters.values.reduce(peak + results, +).count : peak.count
    }
}

/// The recipes with different results for one format.
private struct DistinctRecipes {
    /// In the order of their first occurrence.
    private(set) var recipes: [Recipe] = []
    /// For each requested recipe, its index in ``recipes``.
    private(set) var places: [Int] = []

    init(_ recipes: [Recipe], of header: ImageHeader) {
        guard recipes.count > 1 else {
            self.recipes = recipes
            places = Array(recipes.indices)
            return
        }
        var known: [String: Int] = [:]
        for recipe in recipes {
            let text = Recipe.effectiveText(of: recipe.canonicalText, under: header.codec?.same)
            let place = known[text] ?? self.recipes.count
            if known.updateValue(place, forKey: text) == nil { self.recipes.append(recipe) }
            places.append(place)
        }
    }
}
