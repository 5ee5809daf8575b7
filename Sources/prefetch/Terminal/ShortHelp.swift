import ArgumentParser
import BuildRecord
import Pipeline

/// The page of `prefetch -h` and `prefetch run -h`: commands, and the flags that have a line in
/// ``RunFlags``.
enum ShortHelp {
    static var text: String {
        let commands = Prefetch.configuration.subcommands.map { command in
            line(command.configuration.commandName ?? "", command.configuration.abstract, gap: 14)
        }
        let flags = RunFlags.all.compactMap { row in
            row.brief.map { line(name(of: row), $0 + defaultText(of: row), gap: 24) }
        }
        return head + commands.joined(separator: "\n") + "\n\nCommon flags of run:\n"
            + flags.joined(separator: "\n") + "\n" + foot
    }

    private static let head = """
        prefetch keeps an on-disk cache of images warm.

        Usage: prefetch [run] [options] MANIFEST|URL...
               prefetch COMMAND [options]

        Commands:

        """

    private static let foot = """
          -V, --version           version, commit and libraries

        Examples:
          prefetch images.txt -q --fail-on new --lock skip      # in cron
          prefetch get https://example.com/logo.png

        prefetch run --help shows all flags
        """

    private static func line(_ name: String, _ text: String, gap columns: Int) -> String {
        "  \(name)\(String(repeating: " ", count: max(1, columns - name.count)))\(text)"
    }

    /// `-j, --jobs N`, or the two values of a flag that has no others: `--order fifo|lifo`.
    private static func name(of row: FlagRow) -> String {
        let name = (row.short.map { "-\($0), " } ?? "") + "--\(row.name)"
        guard let value = row.value else { return name }
        let choices = row.choices
        let text = choices.count == 2 ? choices.joined(separator: "|") : value.uppercased()
        return "\(name) " + (text.contains(" ") ? "'\(text)'" : text)
    }

    /// The lines of enumerations name their values, the default first.
    private static func defaultText(of row: FlagRow) -> String {
        guard row.choices.isEmpty, let text = row.defaultText else { return "" }
        return " (\(text))"
    }
}

/// The output of `--version`: the facts that a bug report needs.
///
/// ```
/// prefetch 0.1.0
/// commit 8c03971f0d… with uncommitted changes
/// cache schema 2
/// libcurl 7.88.1 (OpenSSL/3.0.17 zlib/1.2.13 nghttp2/1.52.0)
/// …
/// ```
enum VersionText {
    static func make() -> String {
        let changes = SourceCommit.hasChanges ? " with uncommitted changes" : ""
        let lines = [
            "prefetch \(Prefetch.version)", "commit \(SourceCommit.hash ?? "unknown")\(changes)",
        ]
        return (lines + Components.lines).joined(separator: "\n")
    }
}
