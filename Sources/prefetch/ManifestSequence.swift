import Glibc
import Manifests
import PrefetchModel

/// Several manifests, read one after the other.
///
/// All are opened before anything is read, so that a wrong name is said at once and not after
/// hours.
struct ManifestSequence: EntryReading {
    private var readers: [ManifestReader]

    /// Whether every manifest is a file whose end is known to come.
    let isRegularFiles: Bool
    let sizeInBytes: Int?

    init(paths: [String], options: ManifestOptions) throws {
        if paths.filter({ $0 == "-" }).count > 1 {
            throw CommandFailure(
                exitStatus: 64, message: "standard input can be read once")
        }
        do {
            readers = try paths.map { try ManifestReader(path: $0, options: options) }
        } catch let error as ManifestError {
            throw CommandFailure.unusable(
                error.description, hint: ManifestSequence.hint(for: error))
        }
        isRegularFiles = readers.allSatisfy(\.isRegularFile)
        sizeInBytes = readers.compactMap(\.sizeInBytes).reduce(0, +)
    }

    private static func hint(for error: ManifestError) -> String? {
        if error.path.hasPrefix("http://") || error.path.hasPrefix("https://") {
            return "a manifest is a file; for single URLs: echo URL | prefetch -"
        }
        return error.code == EISDIR
            ? "name a file in it, or pass its list on standard input with -" : nil
    }

    mutating func nextBatch() throws -> EntryBatch? {
        while !readers.isEmpty {
            if let batch = try readers[0].nextBatch() { return batch }
            readers.removeFirst()
        }
        return nil
    }
}
