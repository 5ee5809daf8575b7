import PrefetchModel
internal import SQLite

/// The files of removed variants that no variant names any more.
struct OrphanedFiles {
    /// Sorted by digest, ascending; a digest may repeat.
    private let all: [NamedFile]

    /// Queries in the order of the index.
    init(among files: [NamedFile], in database: Connection) throws {
        let name = try database.prepare(MetadataStatements.nameOfDigest)
        var last: (digest: ContentDigest, isNamed: Bool)?
        all = try files.sorted { $0.digest.leadingWords < $1.digest.leadingWords }.filter { file in
            if let last, last.digest == file.digest { return !last.isNamed }
            let isNamed = try name.hasRow(.digest(file.digest))
            last = (file.digest, isNamed)
            return !isNamed
        }
    }

    func count(in totals: inout TotalsChange) {
        var last: ContentDigest?
        for file in all where file.digest != last {
            totals.count(files: -1, bytes: file.bytes)
            last = file.digest
        }
    }

    /// The files with a known name, each once.
    var files: [NamedFile] {
        var files: [NamedFile] = []
        for file in all where file.format != nil {
            // One digest may have several formats.
            let isKnown = files.reversed().prefix { $0.digest == file.digest }
                .contains { $0.format == file.format }
            if !isKnown { files.append(file) }
        }
        return files
    }
}

/// A content file, as the row of a variant names it.
struct NamedFile: Hashable {
    let digest: ContentDigest
    let bytes: Int
    /// Nil for an unknown format, and thus file name.
    let format: ImageFormat?
}

struct RemovedRows {
    /// Files that no row names any more, each once, in the order of their folders.
    var files: [NamedFile] = []
    var variants = 0
    /// The number of images without a remaining variant.
    var wholeImages = 0
    var gone = ResourceSet()
    /// Keys of completely removed images that had a partial download.
    var keysOfParts: [String] = []
}
