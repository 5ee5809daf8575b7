package import PrefetchModel

/// What became of one image.
package struct ProcessedEntry: Sendable {
    package let header: ImageHeader
    /// Whether its pixels or coefficients were decoded, and not only its structure followed.
    package let isDecoded: Bool
    /// Processor time for all results that were made.
    package let decodeDuration: Duration
    package let encodeDuration: Duration
    /// One for each recipe, in their order. One that cannot be made leaves the others.
    package let results: [Result<ProcessedImage, CodecError>]
    /// Where it was asked for, and pixels or coefficients were decoded for a result that was made.
    package let placeholder: Placeholder?
}

extension ProcessedEntry {
    /// One result that was not tried.
    package init(header: ImageHeader, refusing error: CodecError) {
        self.init(
            header: header, isDecoded: false, decodeDuration: .zero, encodeDuration: .zero,
            results: [.failure(error)], placeholder: nil)
    }

    /// Those of the same image that were made one after the other.
    package init(header: ImageHeader, joining entries: [ProcessedEntry]) {
        self.init(
            header: header, isDecoded: entries.contains(where: \.isDecoded),
            decodeDuration: entries.reduce(.zero) { $0 + $1.decodeDuration },
            encodeDuration: entries.reduce(.zero) { $0 + $1.encodeDuration },
            results: entries.flatMap(\.results),
            placeholder: entries.lazy.compactMap(\.placeholder).first)
    }
}

/// Decodes an image and makes what recipes ask for: a pure function, of values to values.
///
/// Within one format, a result that is not smaller than the source without its metadata gives way to those bytes,
/// unless the recipe keeps it. Another format that was asked for is made at any size.
package enum ImageProcessor {
    /// Makes a result for each recipe. What several need is decoded once, and each result has the bytes that it
    /// would have by itself.
    ///
    /// Synchronous, without shared state; any number of threads may call it at once. It allocates at most about
    /// ``memoryNeed(of:for:check:within:)``. Whatever is decoded is decoded to its end, so that damage is found.
    ///
    /// - Parameters:
    ///   - source: the whole file.
    ///   - header: of the same bytes.
    ///   - recipes: any number; those that come to the same for this format share one result.
    ///   - limits: the time is that of each recipe; what several need counts for the first of them.
    ///   - check: of sources that are stored as they came. ``SourceCheck/structure`` takes whatever
    ///     ``SourceCheck/decode`` does, and of a JPEG misses flipped bits in its entropy-coded data, and encoders that
    ///     made nonsense of valid form. A PNG has checksums, and its image data is inflated: nothing is
    ///     overlooked but symbols that no encoder makes (RFC 1951 section 3.2.6 reserves them), which libdeflate takes
    ///     and zlib does not.
    ///   - memoryBytes: what was reserved, from ``memoryNeed(of:for:check:within:)``: what looks at a source that is
    ///     stored as it came takes the faster of its ways where that has room for it.
    ///   - wantsPlaceholder: whether one is made of what is decoded for results; nothing is decoded for it. Of an
    ///     image with transparency it shows what was decoded: laid over a background where all results are.
    ///   - cancellation: ends it within a few tenths of a second, whatever it is doing, but for image data of a PNG that was
    ///     made to inflate slowly: libdeflate cannot be interrupted, and 8 MiB of it took up to two seconds.
    /// - Returns: a result for each recipe.
    /// - Throws: `cancelled`, and what makes the file one of which nothing can be said or made.
    package static func process(
        _ source: UnsafeRawBufferPointer, header: ImageHeader, recipes: [Recipe],
        limits: CodecLimits = CodecLimits(), check: SourceCheck = .decode,
        memoryBytes: Int = .max, wantsPlaceholder: Bool = false, cancellation: Cancellation? = nil
    ) throws(CodecError) -> ProcessedEntry {
        guard let codec = header.format.codec else {
            return try storedAsItCame(
                source, header, recipes.count, memoryBytes,
                Interruption(limits, cancellation))
        }
        let distinct = DistinctRecipes(recipes, of: header)
        let planned = distinct.recipes.map { PlannedRecipe($0, of: header) }
        let allowed = planned.map { planned in
            Result { () throws(CodecError) in try header.checkPixels(planned.steps, limits) }
        }
        var work = EntryWork(
            EntryPlan(
                bytes: source, source: try codec.open(source, header, limits), codec: codec,
                header: header),
            recipes: zip(planned, allowed).filter { (try? $0.1.get()) != nil }.map(\.0),
            check: check, memoryBytes: memoryBytes,
            wantsPlaceholder: wantsPlaceholder)
        // What is made of the largest raster comes first, so that it is let go first. And what decodes for a result says
        // of the source what those want to know that keep its bytes.
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
            header: header, isDecoded: work.isDecoded,
            decodeDuration: images.reduce(.zero) { $0 + $1.decodeDuration },
            encodeDuration: images.reduce(.zero) { $0 + $1.encodeDuration },
            results: distinct.places.compactMap { results[$0] },
            placeholder: images.isEmpty ? nil : work.placeholder)
    }

    /// What is made of a format that is not decoded, by any recipe: the source's bytes, if its container is whole.
    private static func storedAsItCame(
        _ source: UnsafeRawBufferPointer, _ header: ImageHeader, _ count: Int, _ memoryBytes: Int,
        _ interruption: Interruption
    ) throws(CodecError) -> ProcessedEntry {
        guard let container = header.format.container else {
            throw .unsupported("\(header.format.rawValue) is not decoded")
        }
        try container.check(
            source, memoryBytes: min(memoryBytes, container.memoryBytes(ofSource: source.count)),
            interruption)
        let image = ProcessedImage(
            output: .source, format: header.format, isDecoded: false,
            widthInPixels: header.widthInPixels, heightInPixels: header.heightInPixels,
            decodeDuration: .zero, encodeDuration: .zero)
        return ProcessedEntry(
            header: header, isDecoded: false, decodeDuration: .zero, encodeDuration: .zero,
            results: Array(repeating: .success(image), count: count), placeholder: nil)
    }

    /// An upper estimate, in bytes, of what ``process(_:header:recipes:limits:check:memoryBytes:cancellation:)``
    /// allocates out of a budget of so many bytes, the source not counted; `Int.max` for what cannot be counted.
    package static func memoryNeed(
        of header: ImageHeader, for recipes: [Recipe], check: SourceCheck = .decode,
        within budget: Int
    ) -> Int {
        guard header.format.codec != nil else { return header.structureMemoryBytes(within: budget) }
        let recipes = DistinctRecipes(recipes, of: header).recipes
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
        // One result is within its own peak. Of several the others are kept, and the pixels that they
        // share, of all scales.
        return recipes.count > 1
            ? rasters.values.reduce(peak + results, +).count : peak.count
    }
}

/// The recipes that make different results of one format.
private struct DistinctRecipes {
    /// In the order of the first of each.
    private(set) var recipes: [Recipe] = []
    /// Where in ``recipes`` that of each place is which was asked for.
    private(set) var places: [Int] = []

    init(_ recipes: [Recipe], of header: ImageHeader) {
        guard recipes.count > 1 else {
            self.recipes = recipes
            places = Array(recipes.indices)
            return
        }
        var known: [String: Int] = [:]
        for recipe in recipes {
            let text = Recipe.effectiveText(
                of: recipe.canonicalText, under: header.format.codec?.same)
            let place = known[text] ?? self.recipes.count
            if known.updateValue(place, forKey: text) == nil { self.recipes.append(recipe) }
            places.append(place)
        }
    }
}
