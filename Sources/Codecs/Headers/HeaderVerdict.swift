package import PrefetchModel

/// A run's requirements that can be checked on an image's header.
package struct HeaderRules: Hashable, Sendable {
    package var limits: CodecLimits
    package var recipes: [Recipe]
    package var check: SourceCheck
    /// The treatment of formats that are not decoded.
    package var others: OtherFormats
    /// The filter of wanted images.
    package var wanted: ImageFilter
    /// The limit for the pixels of one image.
    package var memory: ByteCount
    /// The limit for its pixels and its file together.
    package var memoryWithFile: ByteCount

    package init(
        limits: CodecLimits = CodecLimits(), recipes: [Recipe] = [Recipe()],
        check: SourceCheck = .decode, others: OtherFormats = .fail,
        wanted: ImageFilter = ImageFilter(), memory: ByteCount,
        memoryWithFile: ByteCount = ByteCount(.max)
    ) {
        self.limits = limits
        self.recipes = recipes
        self.check = check
        self.others = others
        self.wanted = wanted
        self.memory = memory
        self.memoryWithFile = memoryWithFile
    }

    /// Returns the limit for the pixels of an image.
    package func memory(for header: ImageHeader) -> ByteCount {
        min(memory, ByteCount(max(0, memoryWithFile.bytes - header.sourceBytes)))
    }

    /// Returns the refusal of an image that needs more than ``memory(for:)``. Not `isExact` if the
    /// actual need may turn out higher.
    package func refusal(
        of header: ImageHeader, needing need: Int, isExact: Bool = true
    ) -> CodecError {
        .tooMuchMemory(need, of: memory(for: header), beside: header.sourceBytes, isExact: isExact)
    }

    /// The least memory for an image. Above ``memory(for:)`` it is refused with
    /// ``CodecError/tooMuchMemory(_:of:isExact:)``.
    package func memoryBytes(of header: ImageHeader) -> Int {
        // If they are too much together, they are made one by one.
        let memory = memory(for: header).bytes
        return recipes.map {
            ImageProcessor.memoryNeed(of: header, for: [$0], check: check, within: memory)
        }.min() ?? 0
    }
}

/// The verdict on a whole body, judged by its beginning.
package enum HeaderVerdict: Hashable, Sendable {
    /// More of the body may decide.
    case undecided
    /// Only the whole body can decide.
    case passed
    /// The whole body would be refused with the same error. Only the memory in its text may grow
    /// with the rest of the body.
    case refused(CodecError)

    /// Judges the beginning of a body.
    ///
    /// It refuses only by ``header(of:limits:)`` and ``HeaderRules/memoryBytes(of:)``, which judge
    /// the whole too, and only for facts that can no longer change. Every format is read from front
    /// to back, and every error except truncation is raised at the byte that causes it.
    ///
    /// AVIF passes.
    ///
    /// `totalBytes` is the length of the whole body; nil if unknown.
    package init(
        onBeginning beginning: UnsafeRawBufferPointer, totalBytes: Int? = nil,
        under rules: HeaderRules
    ) {
        self.init(on: beginning) { () throws(CodecError) in
            let format = try acceptedFormat(of: beginning, rules.others)
            // Its container does not say which of its pictures counts.
            guard format != .avif else { return .passed }
            var image = try header(
                of: beginning, format, limits: rules.limits, recipes: rules.recipes,
                others: rules.others)
            image.sourceBytes = max(totalBytes ?? 0, beginning.count)
            try rules.filter(beginning: image, totalBytes: totalBytes)
            return try HeaderVerdict.onMemory(
                image, of: beginning, isLengthKnown: totalBytes != nil, under: rules)
        }
    }

    /// The verdict by the format alone, for a body that may be unchanged from an earlier, accepted
    /// one.
    package init(onFormatOf beginning: UnsafeRawBufferPointer, _ others: OtherFormats = .fail) {
        self.init(on: beginning) { () throws(CodecError) in
            _ = try acceptedFormat(of: beginning, others)
            return .passed
        }
    }

    private init(
        on beginning: UnsafeRawBufferPointer, _ judge: () throws(CodecError) -> HeaderVerdict
    ) {
        // More bytes may show another format.
        guard beginning.count >= signatureBytes,
            SVGContainer.recognition(of: beginning) != .undecided
        else {
            self = .undecided
            return
        }
        do throws(CodecError) {
            self = try judge()
        } catch {
            switch error {
            case .notAnImage, .unsupported, .leftOut, .tooManyPixels, .limitExceeded:
                self = .refused(error)
            case .corrupt(_, isTruncated: true): self = .undecided
            // Whether a damaged image is truncated is known only at its end.
            case .corrupt, .outOfMemory, .encodingFailed, .crashed, .cancelled: self = .passed
            }
        }
    }

    private static func onMemory(
        _ header: ImageHeader, of beginning: UnsafeRawBufferPointer, isLengthKnown: Bool,
        under rules: HeaderRules
    ) throws(CodecError) -> HeaderVerdict {
        guard let codec = header.codec else {
            // The size may follow.
            return header.format.container?.size(in: beginning) == .later ? .undecided : .passed
        }
        let outlook = try codec.source.outlook(on: header, of: beginning)
        let need = outlook.headers.map(rules.memoryBytes).min() ?? 0
        guard need <= rules.memory(for: header).bytes else {
            throw rules.refusal(
                of: header, needing: need, isExact: outlook.isFinal && isLengthKnown)
        }
        return outlook.isFinal ? .passed : .undecided
    }
}

extension HeaderRules {
    /// Checks a whole image against the user's filters on size.
    package func filter(_ header: ImageHeader) throws(CodecError) {
        let (width, height) = header.displayedSize
        if let objection = wanted.objection(width: width, height: height) {
            throw .leftOut(objection)
        }
        if let objection = wanted.objection(bytes: header.sourceBytes) { throw .leftOut(objection) }
    }

    /// Checks the beginning of an image. Width and height may still be exchanged, since an
    /// orientation tag can follow.
    ///
    /// `totalBytes` is the length of the whole file; nil if unknown.
    ///
    /// - Throws: `leftOut` only if the whole image would also be left out.
    func filter(beginning header: ImageHeader, totalBytes: Int?) throws(CodecError) {
        let (width, height) = header.displayedSize
        if let objection = wanted.objection(width: width, height: height),
            wanted.objection(width: height, height: width) != nil
        {
            throw .leftOut(objection)
        }
        if let objection = wanted.objection(bytes: totalBytes) { throw .leftOut(objection) }
    }
}

extension CodecError {
    fileprivate static func leftOut(_ objection: ImageFilter.Objection) -> CodecError {
        .leftOut(objection.reason, objection.message)
    }
}
