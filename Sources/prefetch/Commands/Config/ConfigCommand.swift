import ArgumentParser

/// `prefetch config`
struct ConfigCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "config",
        abstract: "Show, check and write configuration files.",
        discussion: """
            The keys of configuration files are the names of the flags of `run`. ./prefetch.toml \
            counts more than the user's file, and that one more than /etc/prefetch/config.toml; \
            PREFETCH_* variables count more than files, and flags most.

            Examples:
              prefetch config init
              prefetch config show --origins
              prefetch config check

            Exit status: 0 done, 2 a file cannot be read or written, 64 wrong usage, or a file has \
            mistakes.
            """,
        subcommands: [Show.self, CheckFiles.self, Init.self])
}
