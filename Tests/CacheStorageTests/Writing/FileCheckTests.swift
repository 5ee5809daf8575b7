import Foundation
import PrefetchModel
import Testing

@testable import CacheStorage

/// Files removed by other programs are found at the start of a run.
@Suite(.timeLimit(.minutes(15)))
struct FileCheckTests {
    private let folder: TemporaryFolder
    private var path: String { folder.path + "/cache" }
    private var database: String { path + "/prefetch.sqlite" }
    private let samples = (1...3).map {
        Sample.row(key: "http://a/\($0)", bytes: [UInt8](repeating: UInt8($0), count: 100))
    }

    init() throws {
        folder = try TemporaryFolder()
        try store(samples, in: opened(.never))
    }

    /// Opens the cache with a clock this many seconds ahead, so that recent changes lie in the
    /// past.
    private func opened(_ check: FileCheck, seconds: Int = 3600) throws -> OpenCache {
        try #require(
            try OpenCache.openForRun(
                path: path, waiting: .aMoment, check: check,
                at: Timestamp(seconds: Int64(Date().timeIntervalSince1970) + Int64(seconds))))
    }

    private func missing(_ check: FileCheck = .auto, seconds: Int = 3600) throws -> Int {
        try opened(check, seconds: seconds).repair.missingImages
    }

    private func file(_ index: Int) -> String { path + "/" + samples[index].row.image.relativePath }

    private func keys() throws -> [String] {
        var keys: [String] = []
        let catalog = try CacheCatalog(directory: CacheDirectory(path: path, access: .readOnly))
        try catalog.forEachVariant { keys.append($0.resource.key) }
        return keys
    }

    private func notedFolders() throws -> Int {
        try #require(Int(try queried("SELECT count(*) FROM folder", database)))
    }

    @Test(arguments: [true, false])
    func detectsARemovedFile(isNoted: Bool) throws {
        if isNoted {
            #expect(try missing() == 0)
            #expect(try notedFolders() == 3)
        }
        try FileManager.default.removeItem(atPath: file(1))
        #expect(try missing() == 1)
        #expect(try keys() == ["http://a/1", "http://a/3"])
        #expect(try queried("SELECT count(*) FROM freshness", database) == "2")
        #expect(try missing() == 0)
    }

    @Test func detectsARemovedFolder() throws {
        #expect(try missing() == 0)
        try FileManager.default.removeItem(atPath: path + "/content")
        #expect(try missing() == 3)
        #expect(try keys().isEmpty)
    }

    /// Files behind a link, and the link's times, are not trusted.
    @Test func symbolicLinkIsNoFolder() throws {
        #expect(try missing() == 0)
        let link = URL(filePath: file(0)).deletingLastPathComponent().path
        try FileManager.default.moveItem(atPath: link, toPath: folder.path + "/elsewhere")
        try FileManager.default.createSymbolicLink(
            atPath: link, withDestinationPath: folder.path + "/elsewhere")
        try runSQL("DELETE FROM folder", database)
        #expect(try missing() == 1)
        #expect(try keys() == ["http://a/2", "http://a/3"])
        #expect(try notedFolders() == 2)
        #expect(FileManager.default.fileExists(atPath: file(0)))
    }

    @Test(arguments: [false, true])
    func specialFileIsNoContentFile(isLink: Bool) throws {
        #expect(try missing() == 0)
        try FileManager.default.moveItem(atPath: file(0), toPath: folder.path + "/elsewhere")
        if isLink {
            try FileManager.default.createSymbolicLink(
                atPath: file(0), withDestinationPath: folder.path + "/elsewhere")
        } else {
            try FileManager.default.createDirectory(
                atPath: file(0), withIntermediateDirectories: false)
        }
        #expect(try missing() == 1)
    }

    /// Unchanged folders cost nothing: only their times are read.
    @Test func skipsUnchangedFolders() throws {
        do {
            // After an unfinished run the search for orphaned files would change folders.
            let cache = try opened(.auto)
            let run = try cache.log.begin(manifests: ["m"], at: Timestamp(milliseconds: 5))
            try cache.log.end(
                run, at: Timestamp(milliseconds: 6), exitStatus: 0, counters: RunCounters())
        }
        // Rows of missing files in the same folders.
        for sample in samples {
            let name = "\(sample.row.image.digest)"
            let other = name.prefix(2) + String(repeating: "0", count: 62)
            try runSQL(
                "UPDATE variant SET sha256 = x'\(other)' WHERE sha256 = x'\(name)'", database)
        }
        #expect(try missing() == 0)
        // A new or changed folder is listed.
        let folder = samples[0].row.image.digest.bytes[0]
        try runSQL("DELETE FROM folder WHERE number = \(folder)", database)
        #expect(try missing() == 1)
        try Data().write(to: URL(filePath: file(1) + ".note"))
        #expect(try missing() == 1)
    }

    /// A copied folder may lack files despite equal times.
    @Test func listsACopiedCache() throws {
        #expect(try missing() == 0)
        try FileManager.default.removeItem(atPath: file(2))
        let copy = Process()
        copy.executableURL = URL(filePath: "/bin/cp")
        copy.arguments = ["-a", path, folder.path + "/copy"]
        try copy.run()
        copy.waitUntilExit()
        #expect(copy.terminationStatus == 0)
        // The copy's modification times are set to the recorded ones.
        let rows = try queried(
            "SELECT group_concat(number || ' ' || modified_at) FROM folder", database)
        for row in rows.split(separator: ",") {
            let numbers = row.split(separator: " ").compactMap { Int($0) }
            let name = String(format: "%02x", numbers[0])
            var times = [
                timespec(tv_sec: numbers[1] / 1_000_000_000, tv_nsec: numbers[1] % 1_000_000_000),
                timespec(tv_sec: numbers[1] / 1_000_000_000, tv_nsec: numbers[1] % 1_000_000_000),
            ]
            #expect(utimensat(AT_FDCWD, folder.path + "/copy/content/" + name, &times, 0) == 0)
        }
        let opened = try #require(
            try OpenCache.openForRun(
                path: folder.path + "/copy", waiting: .aMoment,
                at: Timestamp(seconds: Int64(Date().timeIntervalSince1970) + 3600)))
        #expect(opened.repair.missingImages == 1)
    }

    /// Changes within a tick of the file system's clock have the same time.
    @Test(arguments: [(0, 0), (10, 3)])
    func storesNoRecentTimes(seconds: Int, folders: Int) throws {
        #expect(try missing(seconds: seconds) == 0)
        #expect(try notedFolders() == folders)
    }

    @Test func detectsTruncatedFilesOnDemand() throws {
        #expect(try missing() == 0)
        #expect(truncate(file(0), 50) == 0)
        #expect(try missing(.never) == 0)
        #expect(try missing(.auto) == 0)
        #expect(try missing(.always) == 1)
        #expect(try keys() == ["http://a/2", "http://a/3"])
        #expect(!FileManager.default.fileExists(atPath: file(0)))
    }

    @Test func trustsRowsOnDemand() throws {
        try FileManager.default.removeItem(atPath: file(0))
        #expect(try missing(.never) == 0)
        #expect(try keys().count == 3)
        #expect(try missing(.always) == 1)
    }
}
