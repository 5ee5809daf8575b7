package import PrefetchModel

/// The libraries that are loaded on first use, and that a worker loads before its walls stand.
package struct CodecLibrarySet: OptionSet, Hashable, Sendable {
    package let rawValue: Int

    package init(rawValue: Int) {
        self.rawValue = rawValue
    }

    package static let avif = CodecLibrarySet(rawValue: 1)
    package static let tiff = CodecLibrarySet(rawValue: 2)
    package static let heif = CodecLibrarySet(rawValue: 4)
    package static let jpegXL = CodecLibrarySet(rawValue: 8)
    package static let jpeg2000 = CodecLibrarySet(rawValue: 16)

    package static let all: CodecLibrarySet = [.avif, .sandboxed]
    /// The libraries that decode in a worker only, or with `--sandbox off`.
    package static let sandboxed: CodecLibrarySet = [.tiff, .heif, .jpegXL, .jpeg2000]

    /// The library that decodes a format; empty for a format without one of them.
    package init(decoding format: ImageFormat) {
        self =
            switch format {
            case .avif: .avif
            case .tiff: .tiff
            case .heif: .heif
            case .jpegXL: .jpegXL
            case .jpeg2000: .jpeg2000
            default: []
            }
    }

    /// The libraries that decode the image or make one of its results.
    package init(for source: ImageFormat?, _ recipes: [Recipe]) {
        self = source.map { CodecLibrarySet(decoding: $0) } ?? []
        formUnion(CodecLibrarySet(for: recipes))
    }

    /// The libraries that may make a result by these recipes, of an image of any other format.
    package init(for recipes: [Recipe]) {
        let needsAVIF = recipes.contains {
            $0.encoding == .avif || $0.encoding == .auto && $0.allowedFormats.contains(.avif)
        }
        self = needsAVIF ? .avif : []
    }
}
