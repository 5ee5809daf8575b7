import Glibc
import PrefetchModel

/// The last change of a folder of content files, in nanoseconds since 1970. Both times change with
/// every file that is added or removed. Programs cannot set the second, so a copy has another.
struct FolderTimes: Hashable {
    let modifiedAt: Int64
    let changedAt: Int64

    /// Two changes within it may get equal stamps: clocks tick every few ms, FAT's every 2 s.
    private static let granularity = Duration.seconds(3)

    /// Whether any change from `now` on is certain to give other times.
    func areSettled(at now: Timestamp) -> Bool {
        let limit = now.advanced(by: .zero - FolderTimes.granularity)
        return max(modifiedAt, changedAt) / 1_000_000 < limit.milliseconds
    }
}

extension ContentStore {
    /// The times of a content folder; nil without one, also for a symbolic link in its place.
    func times(ofFolder number: UInt8) throws(StorageError) -> FolderTimes? {
        let status = try content.existingStatus(of: ContentStore.name(ofFolder: number))
        guard let status, status.isFolder else { return nil }
        func nanoseconds(_ time: timespec) -> Int64 {
            Int64(time.tv_sec).multipliedReportingOverflow(by: 1_000_000_000).partialValue
                &+ Int64(time.tv_nsec)
        }
        return FolderTimes(
            modifiedAt: nanoseconds(status.st_mtim), changedAt: nanoseconds(status.st_ctim))
    }

    /// The digests of the content files in a folder; empty if it is missing.
    func digests(inFolder number: UInt8) throws(StorageError) -> Set<ContentDigest> {
        var digests: Set<ContentDigest> = []
        // Anything else in the folder's place holds no content files.
        try content.existingFolder(ContentStore.name(ofFolder: number))?.forEachEntry { entry in
            if let digest = ContentStore.digest(of: entry) { digests.insert(digest) }
        }
        return digests
    }

    private static func digest(of entry: UnsafeMutablePointer<dirent>) -> ContentDigest? {
        // Some file systems do not report the type.
        guard entry.pointee.d_type == DT_REG || entry.pointee.d_type == DT_UNKNOWN else {
            return nil
        }
        return withUnsafeBytes(of: &entry.pointee.d_name) { name in
            let digits = 2 * ContentDigest.byteCount
            guard let end = name.firstIndex(of: 0), end > digits,
                let digest = ContentDigest(
                    lowercaseHexadecimal: UnsafeRawBufferPointer(rebasing: name[..<digits])),
                name[digits] == UInt8(ascii: ".")
            else { return nil }
            let fileExtension = name[(digits + 1)..<end]
            return extensions.contains { $0.elementsEqual(fileExtension) } ? digest : nil
        }
    }

    private static let extensions = ImageFormat.allCases.map { Array($0.fileExtension.utf8) }

    static func name(ofFolder number: UInt8) -> String {
        (number < 16 ? "0" : "") + String(number, radix: 16)
    }
}
