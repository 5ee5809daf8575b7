import Foundation
import PrefetchModel
import URLParsing

/// The shared test data, read-only; nil where it is missing.
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

    /// The JSON files about URL parsing.
    static let urlParsing: [URL] = {
        guard let folder = folder?.appending(path: "text/url-parsing") else { return [] }
        let files = try? FileManager.default.contentsOfDirectory(
            at: folder, includingPropertiesForKeys: nil)
        return (files ?? []).filter { $0.pathExtension == "json" }
    }()
}

extension URLParsingError {
    /// Nil for a missing library.
    var reason: FailureReason? {
        switch self {
        case .invalid(let failure): failure.reason
        case .missingLibrary: nil
        }
    }
}
