package import PrefetchModel
package struct ProcessedEntry: Sendable {
    package let header: ImageHeader
    package let isDecoded: Bool
    package let decodeDuration: Duration
    package let encodeDuration: Duration
    package let results: [Result<ProcessedImage, CodecError>]
}
package enum ImageProcessor {
    package static func process(
        _ source: UnsafeRawBufferPointer, header: ImageHeader, recipes: [Recipe],
        limits: CodecLimits = CodecLimits(), check: SourceCheck = .decode,
        memoryBytes: Int = .max, cancellation: Cancellation? = nil
    ) throws(CodecError) -> ProcessedEntry {
        var results: [Result<ProcessedImage, CodecError>] = []
        for recipe in recipes {
            let r = Result { () throws(CodecError) in
                switch check {
                case .decode: try Codecs.process(source, header: header, recipe: recipe, limits: limits, cancellation: cancellation)
                case .structure: try checkedStructure(of: source, header: header, limits: limits, memoryBytes: memoryBytes, cancellation: cancellation)
                }
            }
            if case .failure(.cancelled) = r { throw .cancelled }
            results.append(r)
        }
        let images = results.compactMap { try? $0.get() }
        return ProcessedEntry(header: header, isDecoded: check == .decode, decodeDuration: images.reduce(.zero) { $0 + $1.decodeDuration }, encodeDuration: images.reduce(.zero) { $0 + $1.encodeDuration }, results: results)
    }
    package static func memoryNeed(of header: ImageHeader, for recipes: [Recipe], check: SourceCheck = .decode, within budget: Int) -> Int {
        recipes.map { header.memoryBytes(for: $0, check: check, within: budget) }.max() ?? 0
    }
}
