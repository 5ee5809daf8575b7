internal import CPNG
internal import PrefetchModel

extension ImageEncoder {
    static let png = ImageEncoder(
        isLossless: true,
        // With more effort a copy of the rows and two outputs.
        estimate: { basis in
            let written = (basis.isSmall ? 3 : 1) * max(basis.rows, basis.turnedRows)
            return MemoryEstimate(
                peak: basis.margin + basis.packing + basis.rows + basis.turnedRows + written,
                result: basis.rows, raster: basis.rows)
        }, encode: PNGEncoding.encoded)
}

/// Chooses how rows are written: their colour type and depth, filters and compression.
struct PNGEncoding {
    let effort: EncodingEffort
    /// Whether rows may get another colour type or depth. If all metadata is kept, unknown parts of
    /// it may depend on them.
    let changesKind: Bool
    let interruption: Interruption

    /// Makes a PNG of a raster of at most 8 bits a sample, with its orientation applied.
    ///
    /// - Returns: The PNG.
    static func encoded(
        _ raster: consuming Raster, metadata: CarriedMetadata, by recipe: Recipe,
        _ interruption: Interruption
    ) throws(CodecError) -> ImageBytes {
        // The encoder finds palettes itself.
        var raster = raster.isIndexed ? try raster.plain(interruption) : raster
        try raster.turn(interruption)
        var chunks: [UInt8] = []
        if let profile = raster.colour.profile { chunks += PNGFile.profileChunk(profile) }
        chunks += PNGFile.chunks(of: metadata)
        let encoding = PNGEncoding(
            effort: recipe.effort, changesKind: recipe.stripping != .none,
            interruption: interruption)
        let output = try encoding.encoded(&raster.rows, chunks: chunks, maximumBytes: .max / 4)
        guard let output else { throw .encodingFailed("the PNG is too large") }
        return output
    }

    /// Writes the rows as a PNG file and consumes them.
    ///
    /// `chunks` are complete and belong to the given rows. Chunks that depend on the colour type
    /// are adapted to the chosen one.
    ///
    /// - Returns: Nil if the file would reach `maximumBytes`.
    func encoded(
        _ rows: inout cpng_image, chunks: [UInt8], maximumBytes: Int
    ) throws(CodecError) -> ImageBytes? {
        let isSmall = isSmall(rows)
        var forms: [RowForm] = []
        defer { for index in forms.indices { cpng_image_free(&forms[index].sample) } }
        var chunks = chunks
        if changesKind,
            var reduction = PNGReduction(
                chunks: PNGChunk.list(chunks), colorType: rows.color_type, bitDepth: rows.bit_depth)
        {
            // In a small picture even a channel without content may help to find a match.
            if isSmall { forms.append(RowForm(sample: try sample(&rows), chunks: chunks)) }
            reduction.simplify(&rows)
            try interruption.check()
            chunks = PNGEncoding.bytes(reduction)
            let indexing = reduction.indexing(&rows)
            try interruption.check()
            if let indexing {
                forms.append(RowForm(sample: try sample(&rows), chunks: chunks))
                var sample = try sample(&rows)
                reduction.apply(indexing, to: &sample)
                let changed = reduction.changed(by: indexing, from: rows.color_type)
                forms.append(
                    RowForm(
                        sample: sample, chunks: PNGEncoding.bytes(changed),
                        apply: { reduction.apply(indexing, to: &$0) }))
            }
        }
        // Rows with a single strategy need no trial.
        if forms.allSatisfy({ $0.apply == nil }),
            isSmall || candidates(&rows, isSmall: false).count > 1
        {
            forms.append(RowForm(sample: try sample(&rows), chunks: chunks))
        }
        let strategies = try choose(among: &forms, for: &rows, chunks: &chunks)
        return try written(
            &rows, chunks: chunks, strategies: strategies, maximumBytes: maximumBytes)
    }

    /// A representation of the pixels, with a sample of its rows.
    private struct RowForm {
        var sample: cpng_image
        let chunks: [UInt8]
        /// Converts all rows to this form; nil if they have it.
        var apply: ((inout cpng_image) -> Void)?
    }

    private static func bytes(_ reduction: PNGReduction) -> [UInt8] {
        reduction.chunks.flatMap { PNGFile.chunk($0.type, $0.data) }
    }

    /// Whether every strategy is tried on all rows at its final level, so the choice is exact.
    private func isSmall(_ rows: cpng_image) -> Bool {
        let (bytes, overflows) = rows.row_bytes.multipliedReportingOverflow(by: Int(rows.height))
        return !overflows && bytes <= 1 << 16
    }

    private func sample(_ rows: inout cpng_image) throws(CodecError) -> cpng_image {
        var sample = cpng_image()
        let bands: UInt32 = isSmall(rows) ? rows.height : effort == .small ? 16 : 4
        guard cpng_sample(&rows, bands, 16, &sample) == CCODEC_OK else {
            throw .outOfMemory("no memory for a sample")
        }
        return sample
    }

    /// Tries the forms on their samples, and converts rows and chunks to the best one. Of equal
    /// forms it takes the last, which is the shortest without compression.
    private func choose(
        among forms: inout [RowForm], for rows: inout cpng_image, chunks: inout [UInt8]
    ) throws(CodecError) -> [cpng_strategy] {
        try interruption.check()
        guard !forms.isEmpty else { return candidates(&rows, isSmall: false) }
        var least = Double.infinity
        var chosen = 0
        var strategies: [cpng_strategy] = []
        for index in forms.indices {
            let isWhole = forms[index].sample.height == rows.height && isSmall(forms[index].sample)
            let found = best(
                &forms[index].sample, isSmall: isWhole,
                bytesOfRows: Int(rows.height) * forms[index].sample.row_bytes)
            try interruption.check()
            let scale = Double(rows.height) / Double(forms[index].sample.height)
            let bytes = Double(found.bytes) * scale + Double(forms[index].chunks.count)
            if bytes <= least {
                least = bytes
                chosen = index
                strategies = found.strategies
            }
        }
        chunks = forms[chosen].chunks
        if forms[chosen].sample.height == rows.height {
            swap(&rows, &forms[chosen].sample)
        } else {
            forms[chosen].apply?(&rows)
        }
        return strategies
    }

    /// Writes the rows with each strategy and keeps the smallest file.
    private func written(
        _ rows: inout cpng_image, chunks: [UInt8], strategies: [cpng_strategy], maximumBytes: Int
    ) throws(CodecError) -> ImageBytes? {
        var result: ImageBytes?
        for (index, strategy) in strategies.enumerated() {
            var output: UnsafeMutablePointer<UInt8>?
            var length = 0
            let status = cpng_encode(
                &rows, chunks, chunks.count, strategy, index < strategies.count - 1,
                result?.count ?? maximumBytes, &output, &length)
            try interruption.check(status, noMemory: "no memory for the output")
            if let output { result = ImageBytes(owning: output, count: length) }
        }
        return result
    }

    // MARK: - Strategies

    /// The least flatness of graphics; with fewer equal neighbours a picture is a photograph.
    static let leastFlatness = 0.4

    /// The strategies to try for rows.
    ///
    /// Measured on one core against libpng's default (level 6, adaptive filters; `Scripts/bench/run
    /// --only codec`). 28 photographs, 42 megapixels: fast has 10 times its speed at 1.02 of its
    /// size, balanced 8.0 times at 0.97, small a third at 0.93. 12 screens: fast 3.9 times at 0.76,
    /// balanced 3.4 times at 0.76, small a fourteenth at 0.68. libdeflate's level 6 on the
    /// photographs: 3.4 times at 1.00.
    ///
    /// Indices and packed pixels have no meaningful differences between neighbours: no filter.
    /// Photographs (fewer than two pixels in five equal their neighbour) get filters by sums, and
    /// the compressor made for them. In between both are tried, and on flat graphics whether
    /// filters help.
    private func candidates(_ rows: inout cpng_image, isSmall: Bool) -> [cpng_strategy] {
        let isIndexed = rows.bit_depth < 8 || rows.color_type == 3
        let flatness = isIndexed ? 1 : cpng_flatness(&rows)
        switch effort {
        case .fast:
            return flatness < 0.6
                ? [photograph(1, CPNG_FILTER_PAETH)] : [libdeflate(CPNG_FILTER_NONE, 3)]
        case .balanced:
            if isIndexed { return [libdeflate(CPNG_FILTER_NONE, 3)] }
            if flatness < PNGEncoding.leastFlatness { return [photograph(4)] }
            let other = flatness < 0.75 ? photograph(4) : libdeflate(CPNG_FILTER_SUMS, 3)
            return [libdeflate(CPNG_FILTER_NONE, 4), other]
        case .small:
            let filters = [
                CPNG_FILTER_NONE, CPNG_FILTER_SUB, CPNG_FILTER_UP, CPNG_FILTER_PAETH,
                CPNG_FILTER_SUMS, CPNG_FILTER_PAIRS,
            ]
            let level: Int32 = isSmall ? 12 : 6
            return filters.map { libdeflate($0, level) } + [photograph(1024)]
        }
    }

    private func libdeflate(_ filter: cpng_filter, _ level: Int32) -> cpng_strategy {
        cpng_strategy(filter: filter, compressor: CPNG_LIBDEFLATE, level: level)
    }

    private func photograph(_ depth: Int32, _ filter: cpng_filter = CPNG_FILTER_SUMS)
        -> cpng_strategy
    {
        cpng_strategy(filter: filter, compressor: CPNG_PHOTOGRAPH, level: depth)
    }

    /// The strategies for writing all rows, and the size of the sample with the best candidate.
    private func best(
        _ sample: inout cpng_image, isSmall: Bool, bytesOfRows: Int
    ) -> (strategies: [cpng_strategy], bytes: Int) {
        let candidates = candidates(&sample, isSmall: isSmall)
        var trials: [(strategy: cpng_strategy, bytes: Int)] = []
        for strategy in candidates {
            var cheaper = strategy
            // A low level also shows which one is better.
            if effort != .small, !isSmall { cheaper.level = min(strategy.level, 2) }
            let bytes = cpng_trial(&sample, cheaper)
            if bytes > 0 { trials.append((strategy, bytes)) }
        }
        trials.sort { $0.bytes < $1.bytes }
        guard let first = trials.first else { return (candidates, .max) }
        guard effort == .small, !isSmall else { return ([first.strategy], first.bytes) }
        let filters = trials.filter { $0.strategy.compressor == CPNG_LIBDEFLATE }
        // The strategy for photographs, and the best filters at the best compression. The last
        // level takes a second for two megabytes, so large pictures get one that takes a fifth of
        // it.
        let isLarge = bytesOfRows > PNGEncoding.mostThoroughBytes
        return (
            filters.prefix(isLarge ? 1 : 2).map {
                libdeflate($0.strategy.filter, isLarge ? 9 : 12)
            } + [photograph(isLarge ? 64 : 1024)], first.bytes
        )
    }

    private static let mostThoroughBytes = 4 << 20
}
