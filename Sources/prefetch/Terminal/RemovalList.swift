import CacheStorage
import Glibc
import PrefetchModel
import Reporting

/// The images that a dry run would remove, on standard output.
///
/// A line is the image's key; with variants of an image that is kept, their recipes follow, each
/// after a tab. Keys have any secrets in their query strings, as for `list`.
final class RemovalList {
    private var lines = LineWriter.standardOutput()
    private let isWanted: Bool
    private let json: Bool
    private var failure: ReportingError?

    /// Prints nothing without `isWanted`.
    init(isWanted: Bool, json: Bool = false) {
        self.isWanted = isWanted
        self.json = json
    }

    func add(_ removed: RemovalEstimate.Removed) {
        guard isWanted, failure == nil else { return }
        do throws(ReportingError) {
            if json {
                var object = JSONObject()
                object.add("type", "image")
                object.add("key", removed.key)
                object.add("whole", removed.isWhole)
                object.add("recipes", removed.recipes)
                object.add("bytes", removed.bytes)
                try lines.write(object)
            } else {
                let recipes = removed.isWhole ? [] : removed.recipes
                try lines.write(
                    line: ([removed.key] + recipes).map(printable).joined(separator: "\t"))
            }
        } catch {
            failure = error
        }
    }

    /// Writes what is buffered, and throws the first error of any line.
    func finish() throws {
        if let failure { throw failure }
        try lines.flush()
    }
}
