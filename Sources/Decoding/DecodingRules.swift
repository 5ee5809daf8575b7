package import Codecs
package import PrefetchModel

/// The rules of a run for its images.
package struct DecodingRules: Sendable {
    package var header: HeaderRules
    package var makesPlaceholders: Bool
    /// The pictures of `overlay` steps.
    package var overlays: Overlays

    package init(
        header: HeaderRules, makesPlaceholders: Bool = false, overlays: Overlays = Overlays()
    ) {
        self.header = header
        self.makesPlaceholders = makesPlaceholders
        self.overlays = overlays
    }
}

/// The work on an image.
package enum DecodingTask: Hashable, Sendable {
    /// A result for each recipe, of an image that the filters may refuse.
    case new([Recipe])
    /// The same of an image that is stored.
    case stored([Recipe])
    /// A placeholder alone.
    case placeholder

    var recipes: [Recipe] {
        switch self {
        case .new(let recipes), .stored(let recipes): recipes
        case .placeholder: []
        }
    }
}

extension DecodingRules {
    /// Performs a task. `reserve` takes memory for pixels, in place of the memory that it took
    /// before, and returns false if there can never be so much.
    func perform(
        _ task: DecodingTask, on bytes: UnsafeRawBufferPointer, cancellation: Cancellation?,
        reserve: (Int) -> Bool
    ) throws(CodecError) -> ProcessedEntry {
        switch task {
        case .new(let recipes):
            try process(bytes, recipes, isNew: true, cancellation, reserve)
        case .stored(let recipes):
            try process(bytes, recipes, isNew: false, cancellation, reserve)
        case .placeholder:
            try placeholder(of: bytes, reserve)
        }
    }

    private func placeholder(
        of bytes: UnsafeRawBufferPointer, _ reserve: (Int) -> Bool
    ) throws(CodecError) -> ProcessedEntry {
        let image = try Codecs.header(of: bytes, limits: header.limits)
        let need = StoredPlaceholder.memoryNeed(of: image)
        guard reserve(need) else {
            throw .tooManyPixels(
                "its pixels need \(ByteCount(need)), more than the \(header.memory) there are for "
                    + "them")
        }
        let placeholder = try StoredPlaceholder.make(
            of: bytes, header: image, limits: header.limits)
        return ProcessedEntry(header: image, placeholder: placeholder)
    }

    /// Decodes or checks the source and makes a result for each recipe: from one decode, or one by
    /// one where that takes too much memory.
    private func process(
        _ bytes: UnsafeRawBufferPointer, _ recipes: [Recipe], isNew: Bool,
        _ cancellation: Cancellation?, _ reserve: (Int) -> Bool
    ) throws(CodecError) -> ProcessedEntry {
        let image = try Codecs.header(
            of: bytes, limits: header.limits, recipes: recipes, others: header.others)
        if isNew { try header.filter(image) }
        if let processed = try decoded(bytes, image, recipes, cancellation, reserve) {
            return processed
        }
        guard recipes.count > 1 else {
            throw header.refusal(of: image, needing: need(of: image, recipes))
        }
        let entries = try recipes.map { recipe throws(CodecError) in
            try decoded(bytes, image, [recipe], cancellation, reserve)
                ?? ProcessedEntry(
                    header: image,
                    refusing: header.refusal(of: image, needing: need(of: image, [recipe])))
        }
        return ProcessedEntry(header: image, joining: entries)
    }

    private func decoded(
        _ bytes: UnsafeRawBufferPointer, _ image: ImageHeader, _ recipes: [Recipe],
        _ cancellation: Cancellation?, _ reserve: (Int) -> Bool
    ) throws(CodecError) -> ProcessedEntry? {
        let need = need(of: image, recipes)
        guard need <= header.memory(for: image).bytes, reserve(need) else { return nil }
        return try ImageProcessor.process(
            bytes, header: image, recipes: recipes, limits: header.limits, check: header.check,
            memoryBytes: need, overlays: overlays, wantsPlaceholder: makesPlaceholders,
            cancellation: cancellation)
    }

    private func need(of image: ImageHeader, _ recipes: [Recipe]) -> Int {
        ImageProcessor.memoryNeed(
            of: image, for: recipes, check: header.check,
            within: header.memory(for: image).bytes)
    }
}

// MARK: As a message

extension WireWriter {
    mutating func put(_ rules: DecodingRules) {
        put(rules.header)
        put(rules.makesPlaceholders)
        put(rules.overlays.samples) { writer, overlay in
            writer.put("\(overlay.digest)")
            writer.put(overlay.picture.widthInPixels)
            writer.put(overlay.picture.heightInPixels)
            writer.put(overlay.picture.samples)
        }
    }

    private mutating func put(_ rules: HeaderRules) {
        let limits = rules.limits
        put(limits.maximumPixels)
        put(limits.maximumScans)
        put(limits.maximumWarnings)
        put(limits.maximumLibraryBytes)
        put(min(limits.maximumTime, WireReader.mostTime))
        put(rules.recipes)
        put(rules.check.rawValue)
        put(rules.others.rawValue)
        put(rules.wanted.minimumWidth)
        put(rules.wanted.minimumHeight)
        put(rules.wanted.maximumAspect) { $0.put($1) }
        put(rules.wanted.minimumBytes.bytes)
        put(rules.memory.bytes)
        put(rules.memoryWithFile.bytes)
    }

    mutating func put(_ recipes: [Recipe]) {
        put(recipes) { $0.put($1.canonicalText) }
    }
}

extension WireReader {
    mutating func rules() throws(CodecError) -> DecodingRules {
        var rules = DecodingRules(header: try headerRules(), makesPlaceholders: try flag())
        let overlays = try array { (reader) throws(CodecError) in
            (
                ContentDigest(hexadecimal: try reader.text()),
                OverlayPicture(
                    widthInPixels: try reader.number(), heightInPixels: try reader.number(),
                    samples: try reader.data())
            )
        }
        for case (let digest?, let picture) in overlays { rules.overlays.add(picture, digest) }
        return rules
    }

    private mutating func headerRules() throws(CodecError) -> HeaderRules {
        var limits = CodecLimits(maximumPixels: try number())
        limits.maximumScans = try number()
        limits.maximumWarnings = try number()
        limits.maximumLibraryBytes = try number()
        limits.maximumTime = try duration()
        let recipes = try recipes()
        let (check, others): (SourceCheck, OtherFormats) = (try value(), try value())
        var wanted = ImageFilter()
        wanted.minimumWidth = try number()
        wanted.minimumHeight = try number()
        wanted.maximumAspect = try optional { (reader) throws(CodecError) in try reader.double() }
        wanted.minimumBytes = ByteCount(try number())
        return HeaderRules(
            limits: limits, recipes: recipes, check: check, others: others, wanted: wanted,
            memory: ByteCount(try number()), memoryWithFile: ByteCount(try number()))
    }

    mutating func recipes() throws(CodecError) -> [Recipe] {
        try array { (reader) throws(CodecError) in
            guard let recipe = Recipe(canonicalText: try reader.text()) else { throw .nonsense }
            return recipe
        }
    }
}
