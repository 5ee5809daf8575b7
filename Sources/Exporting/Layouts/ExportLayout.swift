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

    /// Whether its reader drops images by times in the folder, which ``ExportRenewal`` renews.
    package var agesFiles: Bool { setsTimes || self == .flutter }

    /// Whether an image may have several variants, with different names.
    package var takesVariants: Bool {
        takesIdentifiers || self == .pattern || self == .imagefolder
    }

    /// Whether it is a ``LoaderLayout``: variants may have the identifiers of transformers.
    package var takesIdentifiers: Bool {
        [.sdwebimage, .kingfisher7, .kingfisher8, .nuke].contains(self)
    }

    /// Whether programs decode all images that are in it, and read their
    /// ``ExportedImage/attributes`` and ``ExportedImage/columns``.
    package var isDataSet: Bool { self == .webdataset || self == .imagefolder }

    /// Whether it has the entries without an image, too, with their reasons.
    package var describesFailures: Bool { self == .webdataset }

    /// Whether its files may be objects of a bucket.
    package var isForBuckets: Bool { isForPages || isDataSet || self == .workbox }

    /// Whether pages can refer to its files.
    package var isForPages: Bool { self == .mirror || self == .pattern }

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
    /// Whether attributes are wanted for a map or snippet.
    package var isDescribed = false

    package init(layout: ExportLayout) { self.layout = layout }
}

package enum ImageFolderMetadata: String, CaseIterable, Sendable {
    case jsonl
    case csv
}
