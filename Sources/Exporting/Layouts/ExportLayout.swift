/// The arrangement of exported files.
package enum ExportLayout: String, CaseIterable, Sendable {
    case mirror
    case pattern
    case sdwebimage
    case kingfisher7
    case kingfisher8
    case nuke
    case coil3
    case glide
    case flutter
    case workbox
    case webdataset
    case imagefolder

    /// Whether the program that reads it takes times of files for its own, so that they cannot be
    /// shared with the cache's files.
    package var setsTimes: Bool { takesIdentifiers && self != .nuke }

    /// Whether an image may have several variants, with different names.
    package var takesVariants: Bool {
        takesIdentifiers || self == .pattern || self == .imagefolder
    }

    /// Whether it is a ``LoaderLayout``: variants may have the identifiers of transformers.
    package var takesIdentifiers: Bool {
        [.sdwebimage, .kingfisher7, .kingfisher8, .nuke].contains(self)
    }

    /// Whether ``ExportedImage/attributes`` and ``ExportedImage/columns`` are of use.
    package var describesImages: Bool { self == .webdataset || self == .imagefolder }

    /// Whether ``ExportedImage/source`` is of use.
    package var needsSources: Bool { [.coil3, .flutter, .webdataset].contains(self) }
}

package struct ExportRules: Sendable {
    package var layout: ExportLayout
    package var pattern: NamePattern?
    package var isCaseInsensitive = false
    /// The transformers' identifiers by the names of variants.
    package var identifiers: [String: String] = [:]
    /// Samples per shard of `webdataset`, 1 or more. Default that of img2dataset.
    package var shardSize = 10_000
    package var caption = "caption"
    package var label = "class"
    package var metadata = ImageFolderMetadata.jsonl

    package init(layout: ExportLayout) { self.layout = layout }
}

package enum ImageFolderMetadata: String, CaseIterable, Sendable {
    case jsonl
    case csv
}
