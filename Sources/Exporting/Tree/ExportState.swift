import Glibc
import PrefetchModel

/// The file `.prefetch-export` of an exported folder: the files that the export has written.
///
/// ```
/// prefetch export 1 <layout>
/// <identity> <time> <size> <modified> <path>     one for each file
/// ```
///
/// Each record ends with a NUL byte. The identity and the time are those of ``PlannedFile``, `-`
/// for the present; size (bytes) and modification time (ns since 1970) are those of the file, by
/// which a changed one is found. Programs that read such folders skip hidden files.
struct ExportState: Sendable {
    static let name = ".prefetch-export"
    private static let version = "prefetch export 1 "

    struct Entry: Hashable, Sendable {
        let identity: ContentIdentity
        /// `-`, or milliseconds.
        let time: String
        let size: Int
        let modifiedAt: Int
    }

    var layout: String
    var entries: [String: Entry] = [:]

    init(layout: ExportLayout) { self.layout = layout.rawValue }

    /// Parses the bytes of a state; nil for other bytes.
    init?(_ bytes: [UInt8]) {
        let records = bytes.split(separator: 0, omittingEmptySubsequences: false)
        guard let first = records.first, records.last?.isEmpty == true else { return nil }
        let head = String(decoding: first, as: UTF8.self)
        guard head.hasPrefix(ExportState.version) else { return nil }
        layout = String(head.dropFirst(ExportState.version.count))
        entries.reserveCapacity(records.count)
        for record in records.dropFirst().dropLast() {
            let fields = record.split(separator: UInt8(ascii: " "), maxSplits: 4)
            func text(_ index: Int) -> String { String(decoding: fields[index], as: UTF8.self) }
            guard fields.count == 5, let identity = ContentIdentity(text(0)),
                let size = Int(text(2)), let modifiedAt = Int(text(3))
            else {
                return nil
            }
            entries[text(4)] = Entry(
                identity: identity, time: text(1), size: size, modifiedAt: modifiedAt)
        }
    }

    /// The bytes of the file, ordered by path.
    var bytes: [UInt8] {
        var bytes = Array((ExportState.version + layout).utf8) + [0]
        for (path, entry) in entries.sorted(by: { $0.key < $1.key }) {
            bytes += Array(
                "\(entry.identity.text) \(entry.time) \(entry.size) \(entry.modifiedAt) \(path)"
                    .utf8)
            bytes.append(0)
        }
        return bytes
    }
}

extension PlannedFile.ModificationTime {
    /// As in the state.
    var text: String {
        switch self {
        case .fixed(let time): String(time.milliseconds)
        case .present: "-"
        }
    }
}

extension stat {
    var modifiedAt: Int { st_mtim.tv_sec * 1_000_000_000 + st_mtim.tv_nsec }
    var permissions: mode_t { st_mode & 0o777 }
    var isRegular: Bool { st_mode & S_IFMT == S_IFREG }
    var isFolder: Bool { st_mode & S_IFMT == S_IFDIR }
}
