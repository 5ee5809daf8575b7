import CacheStorage
import FileOutput
import Hashing
import PrefetchModel
import Reporting

/// The file of `--prometheus`, which each run of a job replaces.
struct MetricsFile {
    private let path: String
    private let job: MetricsText.MetricsJob
    private let lastSuccess: Timestamp?

    /// Lists beyond this number are counted, and told apart by a digest.
    private static let namedLists = 4

    /// Reads the last success of the same job from the present file, else from the run log.
    ///
    /// The log has the lists' names as they were given, so the file knows more.
    init(_ path: String, lists: [String], cacheDirectory: String, _ cache: OpenCache) {
        self.path = path
        let job = MetricsText.MetricsJob(
            list: MetricsFile.name(of: lists), cache: MetricsFile.normalized(cacheDirectory))
        // Errors are dropped: the file is replaced, and the run itself finds damage.
        let present = (try? InputFile.readRegular(path, limit: 1 << 20)) ?? []
        let text = String(decoding: present, as: UTF8.self)
        let logged = try? cache.log.lastSuccess(manifests: lists)
        lastSuccess = MetricsText.lastSuccess(of: job, in: text) ?? logged ?? nil
        self.job = job
    }

    /// The absolute names, separated by spaces. Two folders may have lists of the same name.
    private static func name(of lists: [String]) -> String {
        let folder = CurrentFolder.path
        let names = lists.map { name in
            if ManifestSequence.isURL(name) { return redacted(name) }
            guard let folder, name != "-", name != EntryBatch.nameOfArguments else { return name }
            return normalized(name.hasPrefix("/") ? name : "\(folder)/\(name)")
        }
        guard names.count > namedLists else { return names.joined(separator: " ") }
        let digest = NameDigest.sha256.hexadecimal(of: names.joined(separator: "\n"))
        return "\(names[0]) and \(names.count - 1) others (\(digest.prefix(8)))"
    }

    /// An absolute path without empty parts and dots, so that all spellings are one job.
    private static func normalized(_ path: String) -> String {
        var parts: [Substring] = []
        for part in path.split(separator: "/") where part != "." {
            if part == ".." { _ = parts.popLast() } else { parts.append(part) }
        }
        return "/" + parts.joined(separator: "/")
    }

    /// - Throws: `OutputError` if the file cannot be written.
    func replace(_ summary: RunSummary) throws {
        let now = WallClock.now()
        let metrics = MetricsText(
            summary, of: job, endedAt: now,
            lastSuccess: summary.exitStatus == 0 ? now : lastSuccess)
        try OutputFile.replace(path, with: Array(metrics.text.utf8))
    }
}
