import CacheStorage
import PrefetchModel
import Reporting

/// The images that a dry run would remove, on standard output.
///
/// A line is the image's key; with variants of an image that is kept, their recipes follow, each
/// after a tab. Keys have any secrets in their query strings, as for `list`.
struct RemovalList {
    private let output = CallbackOutput()
    private let isWanted: Bool
    private let json: Bool

    /// Prints nothing without `isWanted`.
    init(isWanted: Bool, json: Bool = false) {
        self.isWanted = isWanted
        self.json = json
    }

    func add(_ removed: RemovalEstimate.Removal) {
        guard isWanted else { return }
        if json {
            var object = JSONObject()
            object.add("type", "image")
            object.add("key", removed.key)
            object.add("whole", removed.isWhole)
            object.add("recipes", removed.recipes)
            object.add("bytes", removed.bytes)
            output.write(object)
        } else {
            let recipes = removed.isWhole ? [] : removed.recipes
            output.write(([removed.key] + recipes).map(printable).joined(separator: "\t"))
        }
    }

    /// Writes the buffered lines, and throws the first error of any line.
    func finish() throws { try output.finish() }
}
