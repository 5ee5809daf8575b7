import ArgumentParser
import CacheStorage
import PrefetchModel

struct ChmodCommand: SearchingCommand {
    static let configuration = CommandConfiguration(
        commandName: "chmod",
        abstract: "Set who may read the cache.",
        discussion: """
            Sets the mode of the cache's files: 0600 lets only you read them, 0640 also your group, \
            0644 everyone. Folders get matching execute bits. Files of later runs get the same mode, \
            with any umask. Readers can use get, list, stats, history and verify, but change \
            nothing.

            A file that an export or another cache shares is copied first. Copies of lists stay \
            private. Foreign files, and those without room for a copy, are counted and skipped. An \
            interrupted command continues at the next call.

            Examples:
              prefetch chmod 0644                     # for a web server
              chgrp -R www-data ~/.cache/prefetch && prefetch chmod 0640

            Exit status: 0 done, 1 no cache, or a file was skipped, 2 the cache cannot be used, 64 \
            wrong usage, 75 another process holds the cache.
            """)

    @Argument(help: "Permissions of files.")
    var mode: FileMode

    @Flag(name: .shortAndLong, help: "Print nothing but errors.")
    var quiet = false

    @OptionGroup var options: ChangeOptions

    func run() throws {
        let changes = try options.change { cache in
            var line = ProgressText(isWanted: !quiet)
            defer { line.clear() }
            return try cache.changeModes(to: mode) { changes in
                line.show("prefetch: \(changes.files + changes.unchanged) files and folders")
            }
        }
        if !quiet { StandardError.write("prefetch: \(text(changes))") }
        if let path = changes.firstSkipped {
            let others = changes.skipped > 1 ? " and \(changes.skipped - 1) more" : ""
            StandardError.write("prefetch: \(path)\(others): not the cache's own; skipped")
        }
        if changes.withoutRoom > 0 {
            StandardError.message(
                "no room for copies of \(counted(changes.withoutRoom, "file")) that other folders "
                    + "share; skipped",
                hint: "free \(ByteCount(changes.bytesWithoutRoom)) and repeat the command")
        }
        if changes.skipped + changes.withoutRoom > 0 {
            throw UserError(.incomplete, "")
        }
    }

    /// `3000 files and 258 folders changed to 0640 and 0750, 4 unchanged`
    private func text(_ changes: OpenCache.ModeChanges) -> String {
        let files = "\(changes.files) \(changes.files == 1 ? "file" : "files")"
        let folders = "\(changes.folders) \(changes.folders == 1 ? "folder" : "folders")"
        let copied =
            changes.copied > 0 ? "; \(counted(changes.copied, "shared file")) copied first" : ""
        return """
            \(files) and \(folders) changed to \(mode) and \(mode.ofFoldersText), \
            \(changes.unchanged) unchanged\(copied)
            """
    }
}
