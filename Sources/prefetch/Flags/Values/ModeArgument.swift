import ArgumentParser
import CacheStorage

/// The mode of a cache's files; see `FileMode`.
struct ModeArgument: ExpressibleByArgument {
    let mode: FileMode

    init?(argument: String) {
        guard let mode = FileMode(text: argument) else { return nil }
        self.mode = mode
    }

    static let allValueStrings = ["0600", "0640", "0644"]
}
