import ArgumentParser
import Buckets
import Exporting
import PrefetchModel

/// A bucket below a prefix as the place of an export.
struct ExportBucket: ObjectStoring {
    let storage: ObjectStorage

    private static let largestState = ByteCount.mebibytes(1024)

    func bytes(of name: String) throws -> [UInt8]? {
        do {
            return try storage.bytes(of: name, limit: ExportBucket.largestState)
        } catch let error as ObjectStorageError where error.kind == .missing {
            return nil
        }
    }

    func put(_ name: String, _ bytes: [UInt8], mediaType: String) throws {
        var rest = bytes
        try storage.put(name, mediaType: mediaType) {
            defer { rest = [] }
            return rest
        }
    }

    func put(_ name: String, mediaType: String, parts: () throws -> [UInt8]) throws {
        try storage.put(name, mediaType: mediaType, parts: parts)
    }

    func remove(_ name: String) throws { try storage.remove(name) }

    func first(of names: [String]) throws -> String? { try storage.first(of: names) }
}

extension ExportCommand {
    /// The bucket and prefix in place of a folder; nil for a folder.
    var location: ObjectLocation? { ObjectLocation(folder) }

    /// Whether the folder has a scheme like `s3:` or `gs://`.
    private var isURL: Bool {
        let scheme = folder.prefix { $0 != ":" }
        return scheme.lowercased() == "s3" && scheme != folder[...]
            || folder.dropFirst(scheme.count).hasPrefix("://") && scheme.allSatisfy(\.isLetter)
    }

    /// Refuses links, modes, and layouts for a device, which a bucket does not have.
    func checkBucket(_ layout: ExportLayout) throws {
        guard isURL else { return }
        guard location != nil else {
            throw ValidationError(
                "\(folder): a bucket is written s3://BUCKET/PREFIX, and a folder of this name "
                    + "./\(folder)")
        }
        guard layout.isForBuckets else {
            let names = ExportLayout.allCases.filter(\.isForBuckets).map(\.rawValue)
            throw ValidationError(
                "\(layout.rawValue) needs a folder; a bucket takes \(names.listed(with: "and"))")
        }
        guard !tree.links, tree.mode == nil else {
            throw ValidationError("a bucket has no links and modes: leave out --link and --mode")
        }
    }
}
