import CacheStorage
import Foundation
import Testing

@Suite(.enabled(if: geteuid() != 0, "root may write everywhere"))
struct CacheExaminationTests {
    /// Modes that prevent a run of the owner.
    @Test(arguments: [
        ("prefetch.sqlite", 0o444), ("lock", 0o444), (".", 0o555), ("content", 0), ("tmp", 0o555),
    ])
    func namesFilesWithoutAccess(name: String, mode: Int) throws {
        let path = FileManager.default.temporaryDirectory
            .appending(path: "prefetch-examination-\(UUID().uuidString)").path
        defer { try? FileManager.default.removeItem(atPath: path) }
        do {
            let cache = try OpenCache.open(path: path, waiting: .upTo(.seconds(30)))
            try #require(cache).synchronize()
        }
        let directory = try CacheDirectory(path: path, access: .readOnly)
        #expect(directory.namesWithoutAccess.isEmpty)
        let file = "\(path)/\(name)"
        try #require(chmod(file, mode_t(mode)) == 0)
        defer { chmod(file, 0o700) }
        let bits = ["prefetch.sqlite": "0444", "lock": "0444", "content": "0000"][name] ?? "0555"
        #expect(directory.namesWithoutAccess == ["\(name) (\(bits))"])
    }
}
