import Glibc
import PrefetchModel

/// The file `.prefetch-export` of an exported folder: the files that the export has written.
///
/// ```
/// prefetch export 1 <layout>
/// <identity> <time> <size> <modified> <path>     one for each file
/// ```
///
/// Each record ends with a NUL byte. ``PlannedFile`` has the identity and the time, `-` for the
/// present; the file's size (bytes) and modification time (ns since 1970) tell whether it was
/// changed. Programs that read such folders skip hidden files.
struct ExportState: Sendable {
    static let name = ".prefetch-export"
    private static let version = "prefetch export 1 "

    struct Entry: Hashable, Sendable {
        var identity: ContentIdentity
        /// `-`, or milliseconds.
        let time: String
        let size: Int
        var modifiedAt: Int
    }

    struct KnownFile: Hashable, Sendable {
        let path: String
        var entry: Entry
    }

    var layout: String
    /// Ordered by the bytes of their paths, each once.
    private(set) var records: [KnownFile] = []

    init(layout: ExportLayout) { self.layout = layout.rawValue }

    /// The Parquet file that the Python package makes of the files of a shard, by one of them; nil
    /// for other files.
    ///
    /// It belongs to the shard: it stays while that does, and is removed with it.
    func table(of path: String) -> String? {
        guard layout == ExportLayout.webdataset.rawValue else { return nil }
        return WebDatasetLayout.suffixes.first(where: path.hasSuffix).map {
            path.dropLast($0.count) + ".parquet"
        }
    }

    init?(_ bytes: [UInt8]) {
        let records = bytes.split(separator: 0, omittingEmptySubsequences: false)
        guard let first = records.first, records.last?.isEmpty == true else { return nil }
        let head = String(decoding: first, as: UTF8.self)
        guard head.hasPrefix(ExportState.version) else { return nil }
        layout = String(head.dropFirst(ExportState.version.count))
        self.records.reserveCapacity(records.count)
        for record in records.dropFirst().dropLast() {
            let fields = record.split(separator: UInt8(ascii: " "), maxSplits: 4)
            func text(_ index: Int) -> String { String(decoding: fields[index], as: UTF8.self) }
            guard fields.count == 5, ExportState.isBelow(fields[4]),
                let identity = ContentIdentity(text(0)),
                let size = Int(text(2)), let modifiedAt = Int(text(3))
            else {
                return nil
            }
            append(
                Entry(identity: identity, time: text(1), size: size, modifiedAt: modifiedAt),
                for: text(4))
        }
        // An edited state.
        let pairs = zip(self.records, self.records.dropFirst())
        if !pairs.allSatisfy({ $0.path.precedes(bytesOf: $1.path) }) { merge([]) }
    }

    /// Whether a path leads to a file in the folder, if no link is followed.
    private static func isBelow(_ path: ArraySlice<UInt8>) -> Bool {
        path.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).allSatisfy {
            !$0.isEmpty && !$0.elementsEqual(".".utf8) && !$0.elementsEqual("..".utf8)
        }
    }

    /// The file at a path; nil if the export has not written it.
    subscript(path: String) -> Entry? { index(of: path).map { records[$0].entry } }

    /// Notes another time of a file.
    mutating func note(modifiedAt: Int, of path: String) {
        if let index = index(of: path) { records[index].entry.modifiedAt = modifiedAt }
    }

    /// Notes a file of the export that was written again with equal contents otherwise.
    mutating func note(_ status: stat, of path: String) {
        guard let index = index(of: path) else { return }
        let entry = records[index].entry
        records[index].entry = Entry(
            identity: entry.identity, time: entry.time, size: Int(status.st_size),
            modifiedAt: status.modifiedAt)
    }

    private func index(of path: String) -> Int? {
        var range = records.startIndex..<records.endIndex
        while let first = range.first {
            let middle = first + range.count / 2
            let record = records[middle]
            if record.path.equals(bytesOf: path) { return middle }
            range =
                record.path.precedes(bytesOf: path)
                ? middle + 1..<range.upperBound : first..<middle
        }
        return nil
    }

    mutating func reserveCapacity(_ count: Int) { records.reserveCapacity(count) }

    /// Notes files as unfinished, so that the next export writes them again.
    mutating func suspend(_ paths: [String]) {
        let paths = Set(paths.map(PathBytes.init))
        for index in records.indices where paths.contains(PathBytes(path: records[index].path)) {
            records[index].entry.identity = .unfinished
        }
    }

    mutating func remove(_ paths: [String]) {
        let paths = Set(paths.map(PathBytes.init))
        records.removeAll { paths.contains(PathBytes(path: $0.path)) }
    }

    /// Whether a path is that of the state itself, or in the stage of an update.
    static func isOwn(_ path: String) -> Bool {
        path == name || path.hasPrefix(name + "-new")
    }

    /// Adds a file.
    ///
    /// - Precondition: its path sorts after all others.
    mutating func append(_ entry: Entry, for path: String) {
        records.append(KnownFile(path: path, entry: entry))
    }

    /// Adds other files. Of two with one path, one stays.
    mutating func merge(_ others: [KnownFile]) {
        let sorted = (records + others).sorted { $0.path.precedes(bytesOf: $1.path) }
        records = []
        for record in sorted where records.last?.path.equals(bytesOf: record.path) != true {
            records.append(record)
        }
    }

    var bytes: [UInt8] {
        var bytes = Array((ExportState.version + layout).utf8) + [0]
        bytes.reserveCapacity(records.count * 128)
        for record in records {
            let entry = record.entry
            entry.identity.appendText(to: &bytes)
            for text in [entry.time, String(entry.size), String(entry.modifiedAt), record.path] {
                bytes.append(UInt8(ascii: " "))
                bytes.append(contentsOf: text.utf8)
            }
            bytes.append(0)
        }
        return bytes
    }
}

extension PlannedFile.ModificationTime {
    var text: String {
        switch self {
        case .fixed(let time): String(time.milliseconds)
        case .present: "-"
        }
    }
}

extension stat {
    /// In nanoseconds, to compare it: it wraps beyond the year 2262.
    var modifiedAt: Int { st_mtim.tv_sec &* 1_000_000_000 &+ st_mtim.tv_nsec }
    var permissions: mode_t { st_mode & 0o777 }
}
