import Foundation
import PrefetchModel
import URLParsing

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

extension URLParsingError {
    /// Of a problem with the text; nil for a library that is missing.
    var reason: FailureReason? {
        switch self {
        case .problem(let problem): problem.reason
        case .missingLibrary: nil
        }
    }
}
