package import Codecs
package import PrefetchModel

/// Invariants of pictures and animations with steps, for arbitrary input bytes.
package enum StepInvariants {
    /// Steps of every kind, at sizes near the small samples.
    package static let steps = [
        "40x30", "x9", "50%", "64x64!", "30x30^", "48x48~#10203040", "25x60~white",
        "crop=17x9+3+2", "rotate=90", "rotate=33.5", "rotate=-7,#ff0000", "flip=h", "blur=1.5",
        "tint=#20408080", "grey", "border=3,#ff000080", "round=7:tl,br", "circle",
    ]

    /// Processes the source by a recipe with one to three steps, derived from its bytes.
    ///
    /// - Returns: Whether the source has a header.
    /// - Throws: The first violation.
    package static func check(
        _ source: UnsafeRawBufferPointer, encodings: [Recipe.Encoding], limits: CodecLimits
    ) throws(CodecInvariants.Violation) -> Bool {
        guard let header = try? Codecs.header(of: source, limits: limits) else { return false }
        let recipe = Recipe(hashing: source, encodings: encodings, steps: steps)
        func require(_ condition: Bool, _ text: String) throws(CodecInvariants.Violation) {
            if !condition { throw CodecInvariants.Violation(recipe: recipe, text: text) }
        }
        let (image, error) = result(source, header, recipe, limits)
        let (_, damage) = result(source, header, Recipe(encoding: .original), limits)
        switch error {
        case nil, .unsupported, .limitExceeded, .tooManyPixels, .outOfMemory: break
        case let error?:
            try require(damage != nil, "refused, where `original` takes it: \(error)")
        }
        guard let image else { return true }
        switch damage {
        case nil, .limitExceeded, .outOfMemory: break
        case let damage?: try require(false, "taken, where `original` refuses it: \(damage)")
        }
        guard case .encoded(let bytes) = image.output else { return true }
        try bytes.withUnsafeBytes { (output) throws(CodecInvariants.Violation) in
            guard let made = try? Codecs.header(of: output, limits: limits) else {
                return try require(false, "the output has no good header")
            }
            try require(
                made.format == image.format && made.orientation == image.orientation
                    && made.displayedSize == (image.widthInPixels, image.heightInPixels),
                "\(made) of \(image)")
            try require(made.frames <= header.frames, "\(made.frames) of \(header.frames) frames")
            let (_, fault) = result(output, made, Recipe(encoding: .original), limits)
            switch fault {
            case nil, .limitExceeded, .tooManyPixels: break
            case let fault?: try require(false, "the output is refused: \(fault)")
            }
        }
        if case .encoded(let again)? = result(source, header, recipe, limits).image?.output {
            let isSame = bytes.withUnsafeBytes { one in
                again.withUnsafeBytes { one.elementsEqual($0) }
            }
            try require(isSame, "other bytes the second time")
        }
        return true
    }

    private static func result(
        _ source: UnsafeRawBufferPointer, _ header: ImageHeader, _ recipe: Recipe,
        _ limits: CodecLimits
    ) -> (image: ProcessedImage?, error: CodecError?) {
        do throws(CodecError) {
            return (try process(source, header: header, recipe: recipe, limits: limits), nil)
        } catch {
            return (nil, error)
        }
    }
}
