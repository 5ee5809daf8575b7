import CacheStorage
import PrefetchModel
import Reporting

/// Shards of a data set as img2dataset writes them.
///
/// ```
/// NNNNN.tar            samples of an image, its caption and its metadata:
///   NNNNNNNNN.jpg        the extension of the format, or jpg if there are several formats
///   NNNNNNNNN.txt        only if an image of the export has a caption
///   NNNNNNNNN.json       url, key, caption, status, error_message, width, height, original_width,
///                        original_height, sha256 of the source, and the list's other columns;
///                        one with such a name has `_` after it
/// NNNNN_failed.jsonl   the JSON of entries without a sample, with their errors; only if there are
/// NNNNN_stats.json     count, successes, failed_to_download, failed_to_resize, status_dict
/// ```
///
/// Keys are the shard's number and the position in it, so they depend on the list alone. The
/// archive has no times, so that it is identical when repeated. Readers find the images of all
/// samples by one name of members, and look for their formats in the bytes.
struct WebDatasetLayout: LayoutMaking {
    let size: Int
    let caption: String
    var hasSharedFiles: Bool { true }

    private static let ownNames: Set = [
        "url", "caption", "key", "status", "error_message", "width", "height", "original_width",
        "original_height", "sha256",
    ]

    /// The ends of the names of a shard's files.
    static let suffixes = [".tar", "_failed.jsonl", "_stats.json"]

    private var digits: Int { max(4, String(size - 1).count) }

    func path(of image: ExportedImage) -> String {
        "\(name(ofShard: shard(of: image.number))).tar/\(key(of: image.number)).\(image.stored.format.fileExtension)"
    }

    func sharedExtension(of formats: Set<ImageFormat>) -> String? {
        formats.count > 1 ? ImageFormat.jpeg.fileExtension : nil
    }

    private func shard(of number: Int) -> Int { (number - 1) / size }

    private func name(ofShard shard: Int) -> String { shard.padded(to: 5) }

    private func key(of number: Int) -> String {
        name(ofShard: shard(of: number)) + ((number - 1) % size).padded(to: digits)
    }

    private struct ShardFiles {
        var members: [ArchiveMember] = []
        var failed: [UInt8] = []
        var statistics = ShardStatistics()
    }

    func files(of rows: [ExportPlan.Row], missing: [MissingEntry]) -> [PlannedFile] {
        let samples = Samples(self, rows, missing)
        var shards: [Int: ShardFiles] = [:]
        for row in rows {
            let key = key(of: row.image.number)
            let caption = row.image.detail(caption)
            var members = [
                ArchiveMember(
                    name: String(row.path.drop { $0 != "/" }.dropFirst()),
                    content: .stored(row.image.stored)),
                ArchiveMember(
                    name: key + ".json", content: .bytes(samples.metadata(row.image, key))),
            ]
            if samples.haveCaptions {
                members.append(
                    ArchiveMember(
                        name: key + ".txt", content: .bytes(Array((caption ?? "").utf8))))
            }
            let shard = shard(of: row.image.number)
            shards[shard, default: ShardFiles()].members += members
            shards[shard, default: ShardFiles()].statistics.successes += 1
        }
        for entry in missing.sorted(by: { $0.number < $1.number }) {
            let shard = shard(of: entry.number)
            let line = samples.metadata(entry, key(of: entry.number)) + [UInt8(ascii: "\n")]
            shards[shard, default: ShardFiles()].failed += line
            shards[shard, default: ShardFiles()].statistics.add(entry)
        }
        return shards.flatMap { number, shard in
            let contents: [PlannedFile.Content?] = [
                shard.members.isEmpty ? nil : .archive(shard.members),
                shard.failed.isEmpty ? nil : .bytes(shard.failed),
                .bytes(shard.statistics.json),
            ]
            return zip(WebDatasetLayout.suffixes, contents).compactMap { suffix, content in
                content.map {
                    PlannedFile(
                        path: name(ofShard: number) + suffix, content: $0,
                        modified: .fixed(Timestamp(milliseconds: 0)))
                }
            }
        }
    }

    /// The metadata of all samples, with the same members in each.
    private struct Samples {
        private let caption: String
        private var columns: DataColumns
        let haveCaptions: Bool

        init(_ layout: WebDatasetLayout, _ rows: [ExportPlan.Row], _ missing: [MissingEntry]) {
            caption = layout.caption
            columns = DataColumns(
                reserving: DataColumns.ReservedNames(names: WebDatasetLayout.ownNames),
                excluding: layout.caption)
            haveCaptions = rows.contains { $0.image.detail(layout.caption) != nil }
            for row in rows { columns.note(columns.cells(of: row.image)) }
            for entry in missing { columns.note(columns.cells(of: entry), isSample: false) }
        }

        func metadata(_ image: ExportedImage, _ key: String) -> [UInt8] {
            var object = JSONObject()
            object.add("url", image.shownURL)
            object.add("caption", image.detail(caption) ?? (haveCaptions ? "" : nil))
            object.add("key", key)
            object.add("status", ShardStatistics.success)
            object.addNull("error_message")
            object.add("width", image.stored.knownWidth)
            object.add("height", image.stored.knownHeight)
            object.add("original_width", image.source?.widthInPixels)
            object.add("original_height", image.source?.heightInPixels)
            object.add("sha256", image.source?.digest.description)
            add(columns.cells(of: image), to: &object)
            return object.bytes
        }

        func metadata(_ entry: MissingEntry, _ key: String) -> [UInt8] {
            var object = JSONObject()
            object.add("url", entry.url.map { RedactedURL(line: $0).description })
            object.add("caption", entry.detail(caption))
            object.add("key", key)
            object.add("status", ShardStatistics.status(of: entry))
            object.add("error_message", entry.reason)
            for name in ["width", "height", "original_width", "original_height", "sha256"] {
                object.addNull(name)
            }
            add(columns.cells(of: entry), to: &object)
            return object.bytes
        }

        private func add(_ cells: DataColumns.Cells, to object: inout JSONObject) {
            for (name, value) in columns.values(of: cells) { object.add(name, value) }
        }
    }
}

/// The counts of a shard, with img2dataset's names.
private struct ShardStatistics {
    static let success = "success"

    var successes = 0
    private var unusable = 0
    private var failed = 0
    private var reasons: [String: Int] = [:]

    static func status(of entry: MissingEntry) -> String {
        entry.isUnusable ? "failed_to_resize" : "failed_to_download"
    }

    mutating func add(_ entry: MissingEntry) {
        if entry.isUnusable { unusable += 1 } else { failed += 1 }
        reasons[entry.reason, default: 0] += 1
    }

    var json: [UInt8] {
        var statuses = JSONObject()
        if successes > 0 { statuses.add(ShardStatistics.success, successes) }
        for (reason, count) in reasons.sorted(by: { $0.key < $1.key }) {
            statuses.add(reason, count)
        }
        var object = JSONObject()
        object.add("count", successes + failed + unusable)
        object.add("successes", successes)
        object.add("failed_to_download", failed)
        object.add("failed_to_resize", unusable)
        object.add("status_dict", statuses)
        return object.bytes + [UInt8(ascii: "\n")]
    }
}
