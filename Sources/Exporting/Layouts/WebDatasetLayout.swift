import CacheStorage
import PrefetchModel
import Reporting

/// Shards of a data set as img2dataset writes them.
///
/// ```
/// NNNNN.tar          samples of an image, its caption and its metadata:
///   NNNNNNNNN.jpg      the extension is that of the stored variant
///   NNNNNNNNN.txt      only if an image of the export has a caption
///   NNNNNNNNN.json     url, key, caption, status, error_message, width, height, original_width,
///                      original_height, sha256 of the source, and the list's other columns
/// NNNNN_stats.json   count, successes, failed_to_download, failed_to_resize, status_dict
/// ```
///
/// Keys are the shard's number and the position in it, so they depend on the list alone. The
/// archive has no times, so that it is identical when repeated.
struct WebDatasetLayout: LayoutMaking {
    let size: Int
    let caption: String
    var hasSharedFiles: Bool { true }

    private var digits: Int { max(4, String(size - 1).count) }

    func path(of image: ExportedImage) -> String {
        "\(name(ofShard: shard(of: image.number))).tar/\(key(of: image)).\(image.stored.format.fileExtension)"
    }

    private func shard(of number: Int) -> Int { (number - 1) / size }

    private func name(ofShard shard: Int) -> String { shard.padded(to: 5) }

    private func key(of image: ExportedImage) -> String {
        name(ofShard: shard(of: image.number))
            + ((image.number - 1) % size).padded(to: digits)
    }

    func files(of rows: [ExportPlan.Row], missing: [Int]) -> [PlannedFile] {
        let captions = rows.map { $0.image.detail(caption) }
        let hasCaptions = captions.contains { $0 != nil }
        let lost = Dictionary(grouping: missing, by: shard).mapValues(\.count)
        var shards: [Int: (members: [ArchiveMember], count: Int)] = [:]
        for (row, caption) in zip(rows, captions) {
            let key = key(of: row.image)
            var members = [
                ArchiveMember(
                    name: "\(key).\(row.image.stored.format.fileExtension)",
                    content: .stored(row.image.stored)),
                ArchiveMember(
                    name: key + ".json", content: .bytes(metadata(row.image, key, caption))),
            ]
            if hasCaptions {
                members.append(
                    ArchiveMember(
                        name: key + ".txt", content: .bytes(Array((caption ?? "").utf8))))
            }
            shards[shard(of: row.image.number), default: ([], 0)].members += members
            shards[shard(of: row.image.number), default: ([], 0)].count += 1
        }
        return shards.flatMap { number, shard in
            [
                PlannedFile(
                    path: name(ofShard: number) + ".tar", content: .archive(shard.members),
                    modified: .fixed(Timestamp(milliseconds: 0))),
                PlannedFile(
                    path: name(ofShard: number) + "_stats.json",
                    content: .bytes(statistics(shard.count, lost: lost[number] ?? 0)),
                    modified: .fixed(Timestamp(milliseconds: 0))),
            ]
        }
    }

    private func metadata(_ image: ExportedImage, _ key: String, _ caption: String?) -> [UInt8] {
        var object = JSONObject()
        object.add("url", image.url)
        object.add("caption", caption)
        object.add("key", key)
        object.add("status", "success")
        object.addNull("error_message")
        object.add("width", image.stored.knownWidth)
        object.add("height", image.stored.knownHeight)
        object.add("original_width", image.source?.widthInPixels)
        object.add("original_height", image.source?.heightInPixels)
        object.add("sha256", image.source?.digest.description)
        var names: Set = [
            "url", "caption", "key", "status", "error_message", "width", "height",
            "original_width", "original_height", "sha256", self.caption,
        ]
        for column in image.listColumns where names.insert(column.name).inserted {
            object.add(column.name, RawJSON(column.json))
        }
        for attribute in image.attributes where names.insert(attribute.name).inserted {
            object.add(attribute.name, String(decoding: attribute.value, as: UTF8.self))
        }
        return object.bytes
    }

    private func statistics(_ count: Int, lost: Int) -> [UInt8] {
        var statuses = JSONObject()
        statuses.add("success", count)
        if lost > 0 { statuses.add("not stored", lost) }
        var object = JSONObject()
        object.add("count", count + lost)
        object.add("successes", count)
        object.add("failed_to_download", lost)
        object.add("failed_to_resize", 0)
        object.add("status_dict", statuses)
        return object.bytes + [UInt8(ascii: "\n")]
    }
}
