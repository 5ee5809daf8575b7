import ArgumentParser
import Glibc
import PrefetchModel
import Reporting

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

extension ConfigCommand {
    struct Init: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "init",
            abstract: "Write a commented configuration file.",
            discussion: """
                Writes every key with its default and its help, commented out.

                Examples:
                  prefetch config init
                  prefetch config init ~/.config/prefetch/config.toml
                """)

        @Argument(
            help: .value(
                "file",
                "The file to write; - is standard output (default: \(ConfigurationSearch.projectFile))."
            ), completion: .file())
        var file: String?

        @Flag(help: "Replace an existing file.")
        var force = false

        func run() throws {
            let path = file ?? ConfigurationSearch.projectFile
            if path != "-", !force, access(path, F_OK) == 0 {
                throw UserError(
                    "\(path): exists already", hint: "--force replaces it; - prints the text")
            }
            var files = WrittenFiles()
            files.written = [WrittenFiles.Use(path: path, name: "config init")]
            files.replacesConfiguration = true
            try files.check(
                cacheDirectory: nil, ConfigurationChoice(try Flags<ConfigurationFlags>.parse([])))
            let text = CommentedConfiguration.lines.map { $0 + "\n" }.joined()
            try OutputFile.replace(path, with: Array(text.utf8))
        }
    }
}
