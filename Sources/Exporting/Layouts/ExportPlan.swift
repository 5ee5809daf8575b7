internal import Hashing
package import PrefetchModel

/// The images of an export with the paths of their files.
package struct ExportPlan: Sendable {
    package struct Row: Sendable {
        package let image: ExportedImage
        package internal(set) var path: String
        /// Whether an earlier row has the file.
        let isRepeated: Bool

        /// Whether the extension is that of another image format than the file's.
        fileprivate var isMisnamed: Bool {
            let name = (path.split(separator: "/").last ?? "").prefix { $0 != "?" }
            guard let dot = name.lastIndex(of: ".") else { return false }
            let ending = name[name.index(after: dot)...].lowercased()
            let named = ImageFormat.allCases.first {
                $0.fileExtension == ending || $0.rawValue == ending
            }
            return named.map { $0 != image.stored.format } ?? false
        }
    }

    /// The files with names of URLs that have another format; none in a layout with other names.
    package var misnamed: [Row] {
        layout == .mirror || layout == .workbox
            ? rows.filter { !$0.isRepeated && $0.isMisnamed } : []
    }

    package let layout: ExportLayout
    private let pathRules: PathRules
    private let maker: any LayoutMaking
    package private(set) var rows: [Row] = []
    private var missing: [MissingEntry] = []
    private var identities: [PathIdentity] = []
    private var places: [PathIdentity: Int] = [:]

    package init(_ rules: ExportRules, at now: Timestamp) {
        layout = rules.layout
        pathRules = PathRules(isCaseInsensitive: rules.isCaseInsensitive)
        maker = rules.makeLayout(pathRules, at: now)
    }

    var hasSharedFiles: Bool { maker.hasSharedFiles }

    /// The path of an image's file.
    ///
    /// - Throws: ``NamingProblem`` for an image without a path in the layout.
    package func path(of image: ExportedImage) throws(NamingProblem) -> String {
        let path = try maker.path(of: image)
        try PathRules.check(path)
        if let index = maker.indexes.first(where: { path == $0 || path.hasPrefix("\($0)/") }) {
            throw NamingProblem(message: "\(index) is the name of the layout's index")
        }
        return path
    }

    /// Adds an image with its ``path(of:)``. Of several with one path, the first is exported.
    ///
    /// - Returns: nil, or the image that has the path with other bytes.
    package mutating func add(_ image: ExportedImage, as path: String) -> ExportedImage? {
        guard let other = place(image, at: path) else { return nil }
        // Without another name, the first image is the one to report.
        guard let path = try? maker.otherPath(of: image) else { return other }
        return place(image, at: path)
    }

    private mutating func place(_ image: ExportedImage, at path: String) -> ExportedImage? {
        let identity = pathRules.identity(of: path)
        let place = places[identity]
        if let place {
            let other = rows[place].image
            guard other.stored.digest == image.stored.digest else { return other }
        } else {
            places[identity] = rows.count
        }
        // Two spellings of an image share its file.
        rows.append(
            Row(image: image, path: place.map { rows[$0].path } ?? path, isRepeated: place != nil))
        identities.append(identity)
        return nil
    }

    package mutating func addMissing(_ entry: MissingEntry) { missing.append(entry) }

    /// The images by format, the most frequent first, if their files do not have its name.
    package var hiddenFormats: [(format: ImageFormat, count: Int)] {
        guard maker.sharedExtension(of: Set(rows.map(\.image.stored.format))) != nil else {
            return []
        }
        return Dictionary(grouping: rows, by: \.image.stored.format)
            .map { ($0.key, $0.value.count) }
            .sorted { ($1.count, $0.format.rawValue) < ($0.count, $1.format.rawValue) }
    }

    /// Completes the plan: a file with the path of a folder gets `~file` after its name.
    ///
    /// - Returns: the images that collide with others after that, which are not exported.
    package mutating func settle() -> [(image: ExportedImage, other: ExportedImage, path: String)] {
        if let ending = maker.sharedExtension(of: Set(rows.map(\.image.stored.format))) {
            for index in rows.indices {
                let path = rows[index].path
                rows[index].path = path[...(path.lastIndex(of: ".") ?? path.startIndex)] + ending
            }
        }
        var folders: Set<PathIdentity> = []
        var last = ""
        for row in rows {
            guard let slash = row.path.utf8.lastIndex(of: UInt8(ascii: "/")) else { continue }
            // Neighbours are often in one folder.
            guard !row.path[..<slash].equals(bytesOf: last) else { continue }
            last = String(row.path[..<slash])
            var folder = last[...]
            while folders.insert(pathRules.identity(of: String(folder))).inserted,
                let slash = folder.utf8.lastIndex(of: UInt8(ascii: "/"))
            {
                folder = folder[..<slash]
            }
        }
        guard !folders.isEmpty else { return [] }
        var lost: [Int: Int] = [:]
        for index in rows.indices {
            guard folders.contains(identities[index]) else { continue }
            var identity = identities[index]
            while folders.contains(identity) {
                rows[index].path = ExportPlan.besideFolder(rows[index].path, pathRules)
                identity = pathRules.identity(of: rows[index].path)
            }
            if let place = places[identity], rows[place].image.stored != rows[index].image.stored {
                lost[index] = place
            } else {
                places[identity] = index
            }
        }
        let collisions = lost.keys.sorted().compactMap { index in
            lost[index].map { (rows[index].image, rows[$0].image, rows[index].path) }
        }
        rows = rows.indices.filter { lost[$0] == nil }.map { rows[$0] }
        return collisions
    }

    package func rows(in files: Set<String>) -> [Row] {
        guard !files.isEmpty else { return [] }
        return rows.filter { row in
            if files.contains(row.path) { return true }
            // A sample's path begins with that of its shard.
            guard let slash = row.path.utf8.firstIndex(of: UInt8(ascii: "/")) else { return false }
            return files.contains(String(row.path[..<slash]))
        }
    }

    /// The path of a file that has the path of a folder.
    static func besideFolder(_ path: String, _ rules: PathRules) -> String {
        let slash = path.utf8.lastIndex(of: UInt8(ascii: "/"))
        let start = slash.map { path.utf8.index(after: $0) } ?? path.startIndex
        return path[..<start] + rules.name(Array((path[start...] + "~file").utf8))
    }

    /// The files of the export, each path once, in the order of their paths' bytes.
    func files() -> [PlannedFile] {
        let files = maker.files(of: rows, missing: missing)
        // Files are large to move.
        return files.indices.sorted { files[$0].path.precedes(bytesOf: files[$1].path) }.map {
            files[$0]
        }
    }
}

protocol LayoutMaking: Sendable {
    /// The names of its own files beside the images, which no image may have.
    var indexes: [String] { get }
    /// Whether some files are about several images.
    var hasSharedFiles: Bool { get }

    /// The path of an image's file.
    ///
    /// - Throws: ``NamingProblem`` for an image without a path in the layout.
    func path(of image: ExportedImage) throws(NamingProblem) -> String

    /// Another path for an image with the ``path(of:)`` of another one; nil in a layout with
    /// readers that look for that path.
    func otherPath(of image: ExportedImage) throws(NamingProblem) -> String?

    /// The extension that all images get, if it is not that of their formats.
    func sharedExtension(of formats: Set<ImageFormat>) -> String?

    /// All files for these images, each path once; `missing` are the entries without an image.
    func files(of rows: [ExportPlan.Row], missing: [MissingEntry]) -> [PlannedFile]
}

extension LayoutMaking {
    var indexes: [String] { [] }
    var hasSharedFiles: Bool { false }

    func otherPath(of image: ExportedImage) throws(NamingProblem) -> String? { nil }

    func sharedExtension(of formats: Set<ImageFormat>) -> String? { nil }

    /// The files of the images, with the times of their downloads.
    func files(of rows: [ExportPlan.Row], missing: [MissingEntry]) -> [PlannedFile] {
        imageFiles(of: rows) { .fixed($0.fetchedAt) }
    }

    func imageFiles(
        of rows: [ExportPlan.Row], modified: (ExportedImage) -> PlannedFile.ModificationTime
    ) -> [PlannedFile] {
        rows.lazy.filter { !$0.isRepeated }.map { row in
            PlannedFile(
                path: row.path, content: .stored(row.image.stored), modified: modified(row.image))
        }
    }

    /// A file about all images, with the time of the latest.
    func indexFile(_ path: String, _ bytes: [UInt8], of rows: [ExportPlan.Row]) -> PlannedFile {
        let latest = rows.map(\.image.fetchedAt).max() ?? Timestamp(milliseconds: 0)
        return PlannedFile(path: path, content: .bytes(bytes), modified: .fixed(latest))
    }
}

extension ExportRules {
    fileprivate func makeLayout(_ paths: PathRules, at now: Timestamp) -> any LayoutMaking {
        func loader(
            _ digest: NameDigest, _ style: LoaderLayout.KeyStyle, _ time: LoaderLayout.Time
        ) -> LoaderLayout {
            LoaderLayout(digest: digest, style: style, time: time, identifiers: identifiers)
        }
        switch layout {
        case .mirror: return MirrorName(rules: paths)
        case .pattern:
            guard let pattern else { preconditionFailure("the layout has no pattern") }
            return PatternLayout(pattern: pattern, rules: paths)
        case .sdwebimage: return LoaderLayout.sdwebimage(identifiers)
        case .kingfisher7: return loader(.md5, .afterAtSign, .expiry)
        case .kingfisher8: return loader(.sha256, .afterAtSign, .expiry)
        case .nuke: return loader(.sha1, .appended, .download)
        case .coil3: return DiskLruCacheLayout(owner: .coil)
        case .glide: return DiskLruCacheLayout(owner: .glide)
        case .flutter: return FlutterLayout(now: now)
        case .workbox: return WorkboxLayout(name: MirrorName(rules: paths))
        case .webdataset: return WebDatasetLayout(size: shardSize, caption: caption)
        case .imagefolder:
            return ImageFolderLayout(rules: paths, label: label, metadata: metadata)
        }
    }
}

private struct PatternLayout: LayoutMaking {
    let pattern: NamePattern
    let rules: PathRules

    func path(of image: ExportedImage) throws(NamingProblem) -> String {
        try pattern.path(of: image, by: rules)
    }
}

extension Timestamp {
    /// 2100-01-01: the expiry of an image that does not expire, for programs with smaller times.
    static let farFuture = Timestamp(seconds: 4_102_444_800)
}
