import CacheStorage
internal import Hashing
import PrefetchModel

/// The disk cache of Coil 3 or Glide 5, a `DiskLruCache`.
///
/// ```
/// journal     "libcore.io.DiskLruCache", "1", the app's version, the number of values, an empty
///             line; then "CLEAN <key> <length> [<length>]" for each image, oldest first
/// <key>.0     Glide: the image. Coil: the response's status, times and fields
/// <key>.1     Coil: the image
/// ```
///
/// The key is the SHA-256 of the URL. A journal with any other line makes the app delete the
/// folder. Sources: Coil's `DiskLruCache.kt` and `CacheNetworkResponse.kt`, Glide's
/// `DiskLruCache.java` and `SafeKeyGenerator.java`.
struct DiskLruCacheLayout: LayoutMaking {
    enum Owner {
        case coil
        case glide

        var version: Int { self == .coil ? 3 : 1 }
    }

    let owner: Owner
    var hasSharedFiles: Bool { true }

    func path(of image: ExportedImage) -> String {
        NameDigest.sha256.hexadecimal(of: image.url) + (owner == .coil ? ".1" : ".0")
    }

    func files(of rows: [ExportPlan.Row], missing: [MissingEntry]) -> [PlannedFile] {
        let rows = rows.filter { !$0.isRepeated }.sorted {
            ($0.image.fetchedAt, $0.path) < ($1.image.fetchedAt, $1.path)
        }
        var files: [PlannedFile] = []
        let values = owner == .coil ? 2 : 1
        var journal = "libcore.io.DiskLruCache\n1\n\(owner.version)\n\(values)\n\n"
        for row in rows {
            let time = PlannedFile.ModificationTime.fixed(row.image.fetchedAt)
            let key = row.path.dropLast(2)
            journal += "CLEAN \(key)"
            if owner == .coil {
                let metadata = Array(DiskLruCacheLayout.metadata(of: row.image).utf8)
                files.append(
                    PlannedFile(path: "\(key).0", content: .bytes(metadata), modified: time))
                journal += " \(metadata.count)"
            }
            journal += " \(row.image.stored.size.bytes)\n"
            files.append(
                PlannedFile(path: row.path, content: .stored(row.image.stored), modified: time))
        }
        return files + [indexFile("journal", Array(journal.utf8), of: rows)]
    }

    /// Coil's metadata: the status, the times of request and response in milliseconds, the number
    /// of fields, and the fields.
    private static func metadata(of image: ExportedImage) -> String {
        var fields = ["Content-Type:\(image.stored.format.mediaType)"]
        if let source = image.source {
            fields += [
                ("Cache-Control", source.cacheControl), ("ETag", source.entityTag),
                ("Last-Modified", source.lastModified),
            ].compactMap { name, value in value.map { "\(name):\($0)" } }
        }
        let time = (image.source?.validatedAt ?? image.fetchedAt).milliseconds
        return "200\n\(time)\n\(time)\n\(fields.count)\n"
            + fields.map { $0.replacing("\n", with: " ") + "\n" }.joined()
    }
}
