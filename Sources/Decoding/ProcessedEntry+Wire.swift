import Codecs
import PrefetchModel

/// The results of a worker as a message. The encoded images are beside it, in the worker's output.
extension WireWriter {
    /// Adds the results. `place` puts an encoded image into the output and returns its offset.
    mutating func put<Failure>(
        _ entry: ProcessedEntry, place: (ImageBytes) throws(Failure) -> Int
    ) throws(Failure) {
        put(entry.source.format.rawValue)
        put(entry.source.widthInPixels)
        put(entry.source.heightInPixels)
        put(entry.isDecoded)
        put(entry.decodeDuration)
        put(entry.encodeDuration)
        put(entry.placeholder) { writer, placeholder in
            writer.put(placeholder.thumbHash)
            writer.put(placeholder.colour?.number ?? -1)
        }
        put(entry.warning) { writer, warning in
            writer.put(warning.text)
            writer.put(warning.lacksEnd)
        }
        put(entry.results.count)
        for result in entry.results {
            switch result {
            case .success(let image):
                put(true)
                try put(image, place: place)
            case .failure(let error):
                put(false)
                put(error)
            }
        }
    }

    private mutating func put<Failure>(
        _ image: ProcessedImage, place: (ImageBytes) throws(Failure) -> Int
    ) throws(Failure) {
        switch image.output {
        case .source: put(-1)
        case .encoded(let bytes):
            put(try place(bytes))
            put(bytes.count)
        }
        put(image.format.rawValue)
        put(image.isDecoded)
        put(image.widthInPixels)
        put(image.heightInPixels)
        put(image.orientation)
        put(image.framesOfSource ?? -1)
        put(image.decodeDuration)
        put(image.encodeDuration)
        put(image.colour?.rawValue ?? "")
    }

    mutating func put(_ error: CodecError) {
        func put(_ name: CodecErrorName, _ text: String, _ rest: String = "") {
            self.put(name.rawValue)
            self.put(text)
            self.put(rest)
        }
        switch error {
        case .notAnImage(let text): put(.notAnImage, text)
        case .unsupported(let text): put(.unsupported, text)
        case .leftOut(let reason, let text): put(.leftOut, text, reason.rawValue)
        case .tooManyPixels(let text): put(.tooManyPixels, text)
        case .limitExceeded(let text): put(.limitExceeded, text)
        case .corrupt(let text, let isTruncated):
            put(isTruncated ? .truncated : .corrupt, text)
        case .outOfMemory(let text): put(.outOfMemory, text)
        case .encodingFailed(let text): put(.encodingFailed, text)
        case .crashed, .cancelled: put(.cancelled, "")
        }
    }
}

private enum CodecErrorName: String {
    case notAnImage, unsupported, leftOut, tooManyPixels, limitExceeded, corrupt, truncated,
        outOfMemory, encodingFailed, cancelled
}

extension WireReader {
    /// The longest text of a worker. Texts of codecs have a few hundred bytes.
    private static let mostText = 4096

    /// Reads the results of a task. `copy` copies a part of the output into memory of this process.
    /// The format of each result must be one that its recipe may have, and the size in its header
    /// must be the stated one.
    mutating func entry(
        for task: DecodingTask, of original: WorkerImage,
        copy: (_ offset: Int, _ count: Int) throws(CodecError) -> ImageBytes
    ) throws(CodecError) -> ProcessedEntry {
        let source = try description()
        guard original.format == source.format else { throw .nonsense }
        let isDecoded = try flag()
        let durations = (try duration(), try duration())
        let placeholder = try optional { (reader) throws(CodecError) in try reader.placeholder() }
        let warning = try optional { (reader) throws(CodecError) in
            ImageWarning(
                text: try reader.line(), lacksEnd: try reader.flag())
        }
        guard try number() == task.recipes.count else { throw .nonsense }
        var results: [Result<ProcessedImage, CodecError>] = []
        for recipe in task.recipes {
            guard try flag() else {
                results.append(.failure(try codecError()))
                continue
            }
            let image = try image(copy: copy)
            guard image.mayBeMade(by: recipe, of: source.format),
                image.hasItsBytes(source: original.bytes)
            else { throw .nonsense }
            results.append(.success(image))
        }
        guard isAtEnd else { throw .nonsense }
        return ProcessedEntry(
            source: source, isDecoded: isDecoded, decodeDuration: durations.0,
            encodeDuration: durations.1, results: results, placeholder: placeholder,
            warning: warning)
    }

    private mutating func side() throws(CodecError) -> Int { try number(in: 0...Int(Int32.max)) }

    private mutating func description() throws(CodecError) -> ImageDescription {
        ImageDescription(
            format: try value(), widthInPixels: try side(), heightInPixels: try side())
    }

    private mutating func placeholder() throws(CodecError) -> Placeholder {
        let hash = try data(upTo: 25)
        let colour = try number(in: -1...0xFFFFFF)
        guard (5...25).contains(hash.count) else { throw .nonsense }
        return Placeholder(thumbHash: hash, colour: RGBColor(number: colour))
    }

    private mutating func image(
        copy: (Int, Int) throws(CodecError) -> ImageBytes
    ) throws(CodecError) -> ProcessedImage {
        let offset = try number(in: -1...Int.max)
        let output: ProcessedImage.Output
        if offset < 0 {
            output = .source
        } else {
            output = .encoded(try copy(offset, try number()))
        }
        let format: ImageFormat = try value()
        let isDecoded = try flag()
        let size = (try side(), try side())
        let orientation = try number(in: 1...8)
        let frames = try number(in: -1...Int.max)
        let durations = (try duration(), try duration())
        let colour = try text(upTo: 64)
        guard colour.isEmpty || ColourTreatment(rawValue: colour) != nil else { throw .nonsense }
        return ProcessedImage(
            output: output, format: format, isDecoded: isDecoded, displayedSize: size,
            orientation: orientation, framesOfSource: frames < 0 ? nil : frames,
            durations: durations, colour: ColourTreatment(rawValue: colour))
    }

    mutating func codecError() throws(CodecError) -> CodecError {
        let name: CodecErrorName = try value()
        let (text, rest) = (try line(), try text(upTo: 64))
        switch name {
        case .notAnImage: return .notAnImage(text)
        case .unsupported: return .unsupported(text)
        case .leftOut:
            guard let reason = FailureReason(rawValue: rest), reason.isExclusion else {
                throw .nonsense
            }
            return .leftOut(reason, text)
        case .tooManyPixels: return .tooManyPixels(text)
        case .limitExceeded: return .limitExceeded(text)
        case .corrupt: return .corrupt(text, isTruncated: false)
        case .truncated: return .corrupt(text, isTruncated: true)
        case .outOfMemory: return .outOfMemory(text)
        case .encodingFailed: return .encodingFailed(text)
        case .cancelled: return .cancelled
        }
    }

    /// A text of one line.
    private mutating func line() throws(CodecError) -> String {
        let line = try text(upTo: WireReader.mostText)
        guard line.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) else { return line }
        return String(line.map { $0.isNewline || $0 < " " || $0 == "\u{7F}" ? " " : $0 })
    }
}

extension ProcessedImage {
    /// Whether a recipe may make an image of this format from a source of that one.
    fileprivate func mayBeMade(by recipe: Recipe, of source: ImageFormat) -> Bool {
        guard case .encoded = output else {
            return format == source && (!isDecoded || CodecLibraries.decodes(format))
        }
        switch recipe.encoding {
        case .original: return false
        case .same: return format == source || [.jpeg, .png, .webp].contains(format)
        case .auto:
            return format == source
                || recipe.allowedFormats.contains { $0.rawValue == format.rawValue }
        default: return format.rawValue == recipe.encoding.rawValue
        }
    }

    /// Whether its bytes have the stated format and, by their header, the stated size.
    fileprivate func hasItsBytes(source: UnsafeRawBufferPointer) -> Bool {
        guard case .encoded(let bytes) = output else { return hasFormatAndSize(of: source) }
        return bytes.withUnsafeBytes { hasFormatAndSize(of: $0) }
    }

    private func hasFormatAndSize(of bytes: UnsafeRawBufferPointer) -> Bool {
        guard format.hasOwnReader else { return sniffed(bytes) == format }
        let limits = CodecLimits(maximumPixels: .max)
        guard let header = try? Codecs.header(of: bytes, limits: limits, others: .store) else {
            return false
        }
        return header.format == format && header.displayedSize == (widthInPixels, heightInPixels)
    }
}
