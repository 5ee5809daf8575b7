import Foundation

/// SplitMix64, so that a failing case can be had again from its seed.
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var value = state
        value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
        return value ^ (value >> 31)
    }
}

/// The shared test data, read-only; nil where it is not there.
enum SharedData {
    static let folder: URL? = {
        let named = ProcessInfo.processInfo.environment["PREFETCH_SHARED_DATA"]
        let package = URL(filePath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        let folder =
            named.map { URL(filePath: $0) }
            ?? package.appending(path: "../shared/data").standardized
        return FileManager.default.fileExists(atPath: folder.path) ? folder : nil
    }()

    /// The JSON files of URL parsing.
    static let urlParsing: [URL] = {
        guard let folder = folder?.appending(path: "text/url-parsing") else { return [] }
        let files = try? FileManager.default.contentsOfDirectory(
            at: folder, includingPropertiesForKeys: nil)
        return (files ?? []).filter { $0.pathExtension == "json" }
    }()
}
