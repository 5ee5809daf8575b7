internal import CReferenceDecoders
package import Codecs
package import PrefetchModel

/// Invariants of the codecs' verdict on an image, and of its stored form, for arbitrary input
/// bytes.
///
/// Ordinary tests and the fuzz targets check them.
package struct CodecInvariants {
    /// A violated invariant, with the recipe that shows it.
    package struct Violation: Error, CustomStringConvertible {
        package let recipe: Recipe
        package let text: String

        package var description: String { "\(recipe.canonicalText): \(text)" }
    }

    package let limits: CodecLimits
    private let source: UnsafeRawBufferPointer
    private let header: ImageHeader
    /// The reference decoding of the source; nil for a format without a reference library.
    private let reference: ReferencePicture?
    private let verdict: Verdict

    private enum Verdict {
        case taken(ProcessedImage, ImageWarning?)
        case refused(CodecError)
    }

    /// A kind of files that is taken though the library alone refuses it.
    package struct Exception: Sendable {
        package let name: String
        let format: ImageFormat
        /// Why no pixel is lost.
        package let reason: String
        /// Another reader that shows these pixels.
        package let judge: String
        /// By the library's error and our warning.
        fileprivate let applies: @Sendable (String, ImageWarning?) -> Bool
    }

    /// All exceptions from the rule that no verdict is laxer than the library's.
    package static let exceptions = [
        Exception(
            name: "reserved codes", format: .png,
            reason: "no encoder writes them, and the checksum covers the pixels",
            judge: "libdeflate"
        ) { message, _ in PNGReading.isOfReservedCodes(message) },
        Exception(
            name: "no end chunk", format: .png,
            reason: "all rows precede it, with their own checksums", judge: "Pillow"
        ) { _, warning in warning?.lacksEnd == true },
        Exception(
            name: "no end of the image data", format: .png,
            reason: "all rows are unpacked, and the chunks have checksums", judge: "Pillow"
        ) { _, warning in
            warning?.text.contains(ImageWarning.unendedImageData.text) == true
        },
    ]

    /// The exception by which the file is taken; nil if the library takes it too, or
    /// it is refused.
    package var exception: Exception? {
        guard case .taken(_, let warning) = verdict, let reference, !reference.isDecoded,
            !reference.isBeyondLimits
        else { return nil }
        return CodecInvariants.exceptions.first {
            $0.format == header.format && $0.applies(reference.message, warning)
        }
    }

    /// Decodes the source with the codecs and with the reference library; nil if its header is
    /// rejected.
    ///
    /// - Parameters:
    ///   - source: The file's bytes, which must outlive this value.
    ///   - limits: The limits of the codecs; the reference library uses the pixel and scan limits.
    /// - Throws: A violation in the verdicts.
    package init?(
        _ source: UnsafeRawBufferPointer, limits: CodecLimits
    ) throws(Violation) {
        do throws(CodecError) {
            header = try Codecs.header(of: source, limits: limits)
        } catch {
            return nil
        }
        self.source = source
        self.limits = limits
        reference = ReferencePicture(
            source, format: header.format, maximumPixels: limits.maximumPixels,
            maximumScans: limits.maximumScans)
        verdict = CodecInvariants.verdict(
            source, header, Recipe(encoding: .original), limits)
        try checkVerdict()
    }

    private static func verdict(
        _ source: UnsafeRawBufferPointer, _ header: ImageHeader, _ recipe: Recipe,
        _ limits: CodecLimits
    ) -> Verdict {
        do throws(CodecError) {
            let entry = try ImageProcessor.process(
                source, header: header, recipes: [recipe], limits: limits)
            return .taken(try entry.results[0].get(), entry.warning)
        } catch {
            return .refused(error)
        }
    }

    private func require(
        _ condition: Bool, _ recipe: Recipe, _ text: @autoclosure () -> String
    ) throws(Violation) {
        if !condition { throw Violation(recipe: recipe, text: text()) }
    }

    // MARK: - Verdicts

    private func checkVerdict() throws(Violation) {
        let recipe = Recipe(encoding: .original)
        guard case .taken(let image, _) = verdict else { return try checkStructureIsRefused() }
        try require(isSource(image), recipe, "other bytes than the source's")
        try require(
            (image.widthInPixels, image.heightInPixels) == header.displayedSize
                && image.orientation == header.orientation && image.format == header.format,
            recipe, "\(image) of \(header)")
        do throws(CodecError) {
            for memory in [Int.max, 0] {
                _ = try checkedStructure(
                    of: source, header: header, limits: limits, memoryBytes: memory)
            }
        } catch {
            // With hardly any memory zlib reads the rows, which refuses such codes.
            guard case .corrupt(let text, _) = error, PNGReading.isOfReservedCodes(text) else {
                throw Violation(recipe: recipe, text: "the check of the structure finds: \(error)")
            }
        }
        guard let reference else { return }
        // The policy on warnings may be stricter than the library's, never laxer without a reason.
        try require(
            reference.isDecoded || reference.isBeyondLimits || exception != nil, recipe,
            "taken, where the library alone has an error: \(reference.message)")
        try require(
            !reference.isDecoded
                || (reference.width, reference.height)
                    == (header.widthInPixels, header.heightInPixels),
            recipe, "\(header) of \(reference.width)×\(reference.height) pixels")
    }

    /// Checks that input rejected by the decoder is also rejected by the structure check, except
    /// for limits of decoding. The structure of a JPEG, WebP or AVIF tells less.
    private func checkStructureIsRefused() throws(Violation) {
        guard ![.jpeg, .webp, .avif].contains(header.format), case .refused(let error) = verdict
        else { return }
        switch error {
        case .limitExceeded, .outOfMemory: return
        case .corrupt(let text, _) where PNGReading.isOfReservedCodes(text): return
        default: break
        }
        // With memory for all rows, and for hardly any.
        for memory in [Int.max, 0] {
            do throws(CodecError) {
                _ = try checkedStructure(
                    of: source, header: header, limits: limits, memoryBytes: memory)
            } catch {
                continue
            }
            throw Violation(
                recipe: Recipe(encoding: .original),
                text: "the check of the structure takes what decoding refuses: \(error)")
        }
    }

    /// Checks that input which the library decodes without a warning is accepted, except for limits
    /// and explicitly unsupported kinds.
    ///
    /// - Throws: A violation.
    package func checkReferenceIsTaken() throws(Violation) {
        guard let reference, reference.isDecoded, !reference.hasWarning,
            case .refused(let error) = verdict
        else { return }
        switch error {
        case .unsupported, .limitExceeded, .tooManyPixels, .outOfMemory: return
        // The library silently fills missing data with grey.
        case .corrupt("a colour component has no data", _): return
        // The library ignores animations.
        case .corrupt(let text, _) where text.hasPrefix("frame "): return
        default:
            throw Violation(
                recipe: Recipe(encoding: .original),
                text: "refused, where the library alone has no complaint: \(error)")
        }
    }

    private var hasWarning: Bool {
        if case .taken(_, .some) = verdict { true } else { false }
    }

    /// The number of the source's pixels.
    package var pixels: Int { header.pixels }

    // MARK: - Results

    /// Processes the image and checks the result.
    ///
    /// - Throws: The first violation.
    package func check(_ recipe: Recipe) throws(Violation) {
        switch (verdict, CodecInvariants.verdict(source, header, recipe, limits)) {
        case (.refused, .refused(let error)):
            try require(!CodecInvariants.isFault(error), recipe, "\(error)")
        case (.taken, .refused(.unsupported))
        where [.jpeg, .webp, .avif].contains(recipe.encoding)
            && recipe.encoding.rawValue != header.format.rawValue || header.format == .avif:
            // Too many pixels per side for the format, or AVIF colours that are not converted.
            return
        case (.taken, .refused(.unsupported))
        where recipe.animation == .refuse && header.isAnimated:
            return
        case (_, .refused(.limitExceeded)), (_, .refused(.outOfMemory)),
            (.refused(.limitExceeded), _), (.refused(.outOfMemory), _):
            // The two differ in time or memory.
            return
        case (.taken, .refused(let error)):
            throw Violation(recipe: recipe, text: "refused, where `original` takes it: \(error)")
        case (.refused(let error), .taken):
            throw Violation(recipe: recipe, text: "taken, where `original` refuses it: \(error)")
        case (.taken, .taken(let image, _)):
            if case .encoded(let bytes) = image.output {
                try bytes.withUnsafeBytes { (output) throws(Violation) in
                    try check(image, output, recipe)
                }
            } else {
                try check(image, source, recipe)
            }
        }
    }

    /// Processes several recipes at once; each must equal the result of the recipe alone.
    ///
    /// - Throws: The first difference.
    package func checkTogether(_ recipes: [Recipe]) throws(Violation) {
        let results: [Result<ProcessedImage, CodecError>]
        do throws(CodecError) {
            results = try ImageProcessor.process(
                source, header: header, recipes: recipes, limits: limits
            ).results
        } catch {
            results = recipes.map { _ in .failure(error) }
        }
        for (recipe, result) in zip(recipes, results) {
            let alone = CodecInvariants.verdict(source, header, recipe, limits)
            switch (alone, result) {
            case (.refused(.limitExceeded), _), (_, .failure(.limitExceeded)),
                (.refused(.outOfMemory), _), (_, .failure(.outOfMemory)):
                // The two differ in time or memory.
                continue
            case (.taken(let one, _), .success(let other)):
                try require(isSame(one.output, other.output), recipe, "other bytes with others")
            case (.refused(let one), .failure(let other)):
                try require(one == other, recipe, "\(one) alone, \(other) with others")
            case (.taken, .failure(let error)), (.refused(let error), .success):
                throw Violation(recipe: recipe, text: "alone or with others only: \(error)")
            }
        }
    }

    private func isSame(_ one: ProcessedImage.Output, _ other: ProcessedImage.Output) -> Bool {
        switch (one, other) {
        case (.source, .source): true
        case (.encoded(let one), .encoded(let other)):
            one.withUnsafeBytes { one in other.withUnsafeBytes { one.elementsEqual($0) } }
        case (.source, .encoded), (.encoded, .source): false
        }
    }

    private static func isFault(_ error: CodecError) -> Bool {
        if case .encodingFailed = error { return true }
        return false
    }

    private func isSource(_ image: ProcessedImage) -> Bool {
        if case .source = image.output { return true }
        return false
    }

    /// The possible formats of a recipe's result for this source.
    private func formats(by recipe: Recipe) -> [ImageFormat] {
        switch recipe.encoding {
        case .original: [header.format]
        case .same where header.isAnimated && recipe.animation == .keep,
            .auto where header.isAnimated && recipe.animation == .keep:
            [header.format]
        case .same:
            switch header.format {
            case .jpeg, .webp, .avif: [header.format]
            case .gif: [header.isAnimated ? .png : .gif]
            default: [.png]
            }
        case .auto: recipe.allowedFormats.compactMap { ImageFormat(rawValue: $0.rawValue) }
        case .jpeg, .png, .webp, .avif: [recipe.encoding.rawValue].compactMap(ImageFormat.init)
        }
    }

    private func check(
        _ image: ProcessedImage, _ output: UnsafeRawBufferPointer, _ recipe: Recipe
    ) throws(Violation) {
        let made: ImageHeader
        do throws(CodecError) {
            made = try Codecs.header(of: output, limits: limits)
        } catch {
            throw Violation(recipe: recipe, text: "the output has no good header: \(error)")
        }
        try require(
            formats(by: recipe).contains(image.format) && made.format == image.format, recipe,
            "\(image.format) instead of \(formats(by: recipe))")
        try require(
            made.displayedSize == (image.widthInPixels, image.heightInPixels)
                && made.orientation == image.orientation, recipe, "\(made) of \(image)")
        try checkOrientation(of: made, recipe)
        // The first frame of an animation is another picture.
        let isFrame = header.isAnimated && recipe.animation == .first
        // The repair of a fault may add bytes.
        if image.format == header.format, !recipe.keepsLarger, !isFrame, !hasWarning {
            try require(
                output.count <= source.count, recipe, "\(output.count) bytes of \(source.count)")
        }
        try checkOutputDecodes(output, made, recipe)
        try checkAgain(output, made, recipe)
        // The reference libraries convert no colours.
        if image.colour != .converted, image.colour != .toneMapped {
            try checkPixels(output, made, recipe)
        }
    }

    private func checkOrientation(of made: ImageHeader, _ recipe: Recipe) throws(Violation) {
        let isKept = made.orientation == header.orientation
        let isResolved = made.orientation == 1
        let mayKeep = made.format == header.format
        let mayResolve = recipe.encoding != .original
        try require(
            isKept && (mayKeep || isResolved) || isResolved && mayResolve, recipe,
            "orientation \(made.orientation) of \(header.orientation)")
        let isTransposed = !isKept && header.orientation >= 5
        let expected =
            isTransposed
            ? (header.heightInPixels, header.widthInPixels)
            : (header.widthInPixels, header.heightInPixels)
        try require(
            (made.widthInPixels, made.heightInPixels) == expected, recipe, "\(made) of \(header)")
    }

    private func checkOutputDecodes(
        _ output: UnsafeRawBufferPointer, _ made: ImageHeader, _ recipe: Recipe
    ) throws(Violation) {
        do throws(CodecError) {
            _ = try checkedStructure(of: output, header: made, limits: limits)
            _ = try process(
                output, header: made, recipe: Recipe(encoding: .original), limits: limits)
        } catch .limitExceeded {
            return
        } catch {
            throw Violation(recipe: recipe, text: "the output is refused: \(error)")
        }
    }

    /// Processing the output again must change nothing, except for lossy encodings of pixels, which
    /// may shrink each time.
    private func checkAgain(
        _ output: UnsafeRawBufferPointer, _ made: ImageHeader, _ recipe: Recipe
    ) throws(Violation) {
        let isLossy =
            [.webp, .avif, .auto].contains(recipe.encoding)
            || recipe.encoding == .same && [.webp, .avif].contains(header.format)
                && !header.isAnimated
        guard !isLossy else { return }
        switch CodecInvariants.verdict(output, made, recipe, limits) {
        case .refused(.limitExceeded): return
        case .refused(let error):
            throw Violation(recipe: recipe, text: "another run refuses the output: \(error)")
        case .taken(let again, _):
            guard case .encoded(let bytes) = again.output else { return }
            try bytes.withUnsafeBytes { (bytes) throws(Violation) in
                try require(
                    bytes.elementsEqual(output), recipe,
                    "another run makes \(bytes.count) bytes of \(output.count)")
            }
        }
    }

    // MARK: - Pixels

    private func checkPixels(
        _ output: UnsafeRawBufferPointer, _ made: ImageHeader, _ recipe: Recipe
    ) throws(Violation) {
        let result = ReferencePicture(
            output, format: made.format, maximumPixels: limits.maximumPixels,
            maximumScans: limits.maximumScans)
        guard let result else { return }
        guard let reference else {
            return try require(
                result.isDecoded && !result.hasWarning, recipe,
                "the library alone says of the output: \(result.message)")
        }
        guard reference.isDecoded else { return }
        try require(
            result.isDecoded && (!result.hasWarning || reference.hasWarning), recipe,
            "the library alone says of the output: \(result.message)")
        let orientation = made.orientation == header.orientation ? 1 : header.orientation
        switch (header.format, made.format) {
        case (.jpeg, .jpeg):
            try checkCoefficients(output, orientation: orientation, recipe)
        case (_, .png) where header.format == .png || reference.channels != 4:
            // Readers convert CMYK differently.
            let difference = reference.difference(from: result, orientation: orientation)
            try require(difference == nil, recipe, "other pixels: \(difference ?? "")")
        default: break
        }
    }

    private func checkCoefficients(
        _ output: UnsafeRawBufferPointer, orientation: Int, _ recipe: Recipe
    ) throws(Violation) {
        guard let from = source.baseAddress?.assumingMemoryBound(to: UInt8.self),
            let to = output.baseAddress?.assumingMemoryBound(to: UInt8.self)
        else { return }
        var isSame = false
        let text = withUnsafeTemporaryAllocation(
            of: CChar.self, capacity: Int(CREFERENCE_MESSAGE_BYTES)
        ) { message in
            message.initialize(repeating: 0)
            guard let start = message.baseAddress else { return "" }
            isSame = creference_has_same_coefficients(
                from, source.count, to, output.count, Int32(orientation), start)
            return String(cString: start)
        }
        try require(isSame, recipe, text)
    }
}
