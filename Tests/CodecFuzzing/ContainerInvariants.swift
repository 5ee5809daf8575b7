package import Codecs
internal import PrefetchModel

/// What must hold of files that are followed and not decoded, whatever their bytes are.
package enum ContainerInvariants {
    /// What does not hold.
    package struct Violation: Error, CustomStringConvertible {
        package let description: String
    }

    /// Looks at a file by its container alone, and at what the program makes of one that it does not decode.
    ///
    /// - Returns: whether the bytes begin as a format with a container does.
    /// - Throws: the first violation.
    @discardableResult
    package static func check(
        _ source: UnsafeRawBufferPointer, limits: CodecLimits = CodecLimits()
    ) throws(Violation) -> Bool {
        guard let format = sniffed(source) else { return false }
        let whole = outcome { () throws(CodecError) in
            try ContainerFindings(of: source, as: format, limits: limits)
        }
        if case .success(nil) = whole { return false }
        try checkError(whole)
        try checkMemory(source, format, whole, limits)
        if case .success(let findings?) = whole, let size = findings.size {
            try require(size.width >= 0 && size.height >= 0, "a size of \(size)")
        }
        if !CodecLibraries.decodes(format) { try checkStored(source, whole, limits) }
        try checkBeginnings(source, limits)
        return true
    }

    private static func outcome<Value>(
        _ body: () throws(CodecError) -> Value
    ) -> Result<Value, CodecError> {
        do throws(CodecError) {
            return .success(try body())
        } catch {
            return .failure(error)
        }
    }

    private static func require(
        _ condition: Bool, _ text: @autoclosure () -> String
    ) throws(Violation) {
        if !condition { throw Violation(description: text()) }
    }

    private static func checkError<Value>(
        _ outcome: Result<Value, CodecError>
    ) throws(Violation) {
        switch outcome {
        case .success, .failure(.corrupt), .failure(.limitExceeded), .failure(.notAnImage),
            .failure(.tooManyPixels), .failure(.unsupported):
            return
        case .failure(let error): throw Violation(description: "\(error)")
        }
    }

    /// With less memory a file is refused for that, or it is judged alike.
    private static func checkMemory(
        _ source: UnsafeRawBufferPointer, _ format: ImageFormat,
        _ whole: Result<ContainerFindings?, CodecError>, _ limits: CodecLimits
    ) throws(Violation) {
        for memory in [0, source.count] {
            let small = outcome { () throws(CodecError) in
                try ContainerFindings(
                    of: source, as: format, limits: limits, memoryBytes: memory)
            }
            switch (whole, small) {
            case (_, .failure(.limitExceeded)), (.failure(.limitExceeded), _), (.success, .success):
                continue
            case (.failure(let one), .failure(let other)) where one == other: continue
            default:
                throw Violation(description: "\(whole), but \(small) with \(memory) bytes")
            }
        }
    }

    /// What the program stores of a file is the file, if and only if its container is whole.
    private static func checkStored(
        _ source: UnsafeRawBufferPointer, _ whole: Result<ContainerFindings?, CodecError>,
        _ limits: CodecLimits
    ) throws(Violation) {
        let stored = outcome { () throws(CodecError) in
            try ImageProcessor.process(
                source, header: header(of: source, limits: limits, others: .store),
                recipes: [Recipe(encoding: .jpeg)], limits: limits)
        }
        switch (whole, stored) {
        case (.failure(.limitExceeded), _), (_, .failure(.limitExceeded)):
            return
        case (.success, .success(let entry)):
            guard case .success(let image)? = entry.results.first, case .source = image.output,
                !image.isDecoded, !entry.isDecoded
            else { throw Violation(description: "something else than the source is stored") }
        case (.success, .failure(.tooManyPixels)): return
        case (.failure(let one), .failure(let other)) where one == other: return
        // Which of several faults is found first is up to the way.
        case (.failure, .failure): try checkError(stored)
        default: throw Violation(description: "\(whole), but stored: \(stored)")
        }
    }

    /// What the beginning is refused for, the whole is refused for, too.
    private static func checkBeginnings(
        _ source: UnsafeRawBufferPointer, _ limits: CodecLimits
    ) throws(Violation) {
        let rules = HeaderRules(limits: limits, others: .store, memory: ByteCount(1 << 30))
        let whole = outcome { () throws(CodecError) in
            let header = try header(of: source, limits: limits, others: .store)
            return try ImageProcessor.process(
                source, header: header, recipes: rules.recipes, limits: limits
            ).results.first
        }
        guard case .success(.success?) = whole else { return }
        for share in 0...8 {
            let count = source.count * share / 8
            let verdict = HeaderVerdict(
                onBeginning: UnsafeRawBufferPointer(rebasing: source[..<count]),
                totalBytes: source.count, under: rules)
            if case .refused(let error) = verdict {
                throw Violation(
                    description: "refused after \(count) of \(source.count) bytes: \(error)")
            }
        }
    }
}
