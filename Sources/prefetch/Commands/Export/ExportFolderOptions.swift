import ArgumentParser
import CacheStorage
import Exporting
import PrefetchModel

/// Flags of `export` about the folder: its files, and the files that it keeps.
struct ExportFolderOptions: ParsableArguments {
    @Flag(
        name: .customLong("link"),
        help: "Make hard links to the cache's files where possible. Never change such files.")
    var links = false

    @Flag(help: "Change the folder in place; keep files that are not exported now.")
    var update = false

    @Flag(help: "With --update: remove files of earlier exports that are not exported now.")
    var delete = false

    @Flag(
        name: .customLong("allow-empty"), help: "Export an empty folder if there are no images.")
    var allowsEmpty = false

    @Flag(DiskFlags.flags.allowsPartialLists) var allowsPartialLists: Bool

    @Option(
        help: ArgumentHelp(
            "The mode of the files (default: 0666 less the umask).", valueName: "mode"))
    var mode: FileMode?

    /// Whether the export removes files.
    var removesFiles: Bool { delete || !update }

    func validate() throws {
        guard update || !delete else { throw ValidationError("--delete needs --update") }
    }

    func settings(_ gap: ListGap?) -> ExportTree.Options {
        var settings = ExportTree.Options()
        settings.updates = update
        settings.deletes = delete
        settings.gap = gap
        settings.links = links
        settings.mode = mode
        return settings
    }
}
