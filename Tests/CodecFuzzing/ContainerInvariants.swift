package import Codecs
internal import PrefetchModel

/// Invariants of containers that are parsed but not decoded, for arbitrary bytes.
package enum ContainerInvariants {
    /// A violated invariant.
    package struct Violation: Error, CustomStringConvertible {
        package let description: String
    }

    /// Checks a file by its container, and the stored form of formats without a decoder.
    ///
    /// - Returns: Whether the bytes begin like a container format.
    /// - Throws: The first violation.
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
            let orientation = findings.orientation
            try require((1...8).contains(orientation), "an orientation of \(orientation)")
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

    /// Checks that less memory leads to the same verdict or to a rejection for lack of memory.
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

    /// Checks that exactly complete containers are stored, unchanged.
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
        // The order of finding several faults may differ.
        case (.failure, .failure): try checkError(stored)
        default: throw Violation(description: "\(whole), but stored: \(stored)")
        }
    }

    /// Checks that a file is rejected if its beginning is.
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
