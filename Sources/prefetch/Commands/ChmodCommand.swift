import ArgumentParser
import CacheStorage

/// `prefetch chmod`
struct ChmodCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "chmod",
        abstract: "Let others read the cache, or nobody else.",
        discussion: """
            MODE is what the cache's files have from now on: 0600 lets only you read, 0640 your group, too, 0644 \
            everybody. Folders get the execute bits that go with it. New files of all later runs get the same, \
            whatever the umask. Who may read can use get, list, stats, history and verify, but change nothing.

            The folders above the cache are yours to open. When it is ended midway, the next call goes on from there. \
            What is not the cache's own, or belongs to somebody else, is left as it is and counted.

            Examples:
              prefetch chmod 0644                     # for a web server
              chgrp -R www-data ~/.cache/prefetch && prefetch chmod 0640

            Exit status: 0 done, 1 there is no cache, or something was left as it is, 2 the cache cannot be used, 64 \
            wrong usage, 75 a run holds the cache.
            """)

    @Argument(help: "Permissions of files.")
    var mode: ModeArgument

    @Flag(name: .shortAndLong, help: "Print nothing but errors.")
    var quiet = false

    @OptionGroup var options: ChangeOptions

    func run() throws {
        let changes = try options.change { cache in
            var line = ProgressText(isWanted: !quiet && StandardError.isCapableTerminal)
            defer { line.clear() }
            return try cache.changeModes(to: mode.mode) { changes in
                line.show("prefetch: \(changes.files + changes.unchanged) files and folders")
            }
        }
        if !quiet { StandardError.write("prefetch: \(text(changes))") }
        if let path = changes.firstSkipped {
            let others = changes.skipped > 1 ? " and \(changes.skipped - 1) more" : ""
            StandardError.write("prefetch: \(path)\(others): not the cache's own; left as it is")
            throw CommandFailure(exitStatus: 1, message: "")
        }
    }

    /// `3000 files and 258 folders changed to 0640 and 0750, 4 had that already`
    private func text(_ changes: OpenCache.ModeChanges) -> String {
        let files = "\(changes.files) \(changes.files == 1 ? "file" : "files")"
        let folders = "\(changes.folders) \(changes.folders == 1 ? "folder" : "folders")"
        return """
            \(files) and \(folders) changed to \(mode.mode) and \(mode.mode.ofFoldersText), \
            \(changes.unchanged) had that already
            """
    }
}

/// The mode of a cache's files; see `FileMode`.
struct ModeArgument: ExpressibleByArgument {
    let mode: FileMode

    init?(argument: String) {
        guard let mode = FileMode(text: argument) else { return nil }
        self.mode = mode
    }

    static let allValueStrings = ["0600", "0640", "0644"]
}
