import ArgumentParser
import BuildRecord
import Pipeline

/// The pages of `-h`, `--help` and `run -h`: commands, and the flags that have a line in
/// ``RunFlags``.
enum ShortHelp {
    /// The page of `-h`.
    static var text: String { [title, usage, commands, flags, foot].joined(separator: "\n\n") }

    /// The page of `--help`: the same, and an introduction.
    static var long: String {
        let introduction = Prefetch.configuration.discussion
            .split(separator: "\n", omittingEmptySubsequences: false)
            .map { wrapped(String($0)) }.joined(separator: "\n")
        return [title, introduction, usage, commands, flags, long(foot)].joined(separator: "\n\n")
    }

    /// The page of `run -h`.
    static var ofRun: String {
        let title = RunCommand.configuration.abstract
        return [title, usageOfRun, flags, foot].joined(separator: "\n\n")
    }

    private static let title = "prefetch keeps an on-disk cache of images warm."
    private static let usageOfRun = "Usage: prefetch [run] [options] MANIFEST|URL..."
    private static let usage = usageOfRun + "\n       prefetch COMMAND [options]"

    private static var commands: String {
        let lines = Prefetch.configuration.subcommands.map { command in
            line(command.configuration.commandName ?? "", command.configuration.abstract, gap: 14)
        }
        return "Commands:\n" + lines.joined(separator: "\n")
    }

    private static var flags: String {
        let lines = RunFlags.all.compactMap { row in
            row.brief.map { line(name(of: row), $0 + defaultText(of: row), gap: 24) }
        }
        return "Common flags of run:\n" + lines.joined(separator: "\n")
            + "\n  -V, --version           version, commit and libraries"
    }

    private static let foot = """
        Examples:
          prefetch images.txt -q --fail-on new --lock skip      # in cron
          prefetch get https://example.com/logo.png

        prefetch run --help shows all flags
        """

    private static func long(_ foot: String) -> String {
        foot + ", prefetch COMMAND --help a command's;\n"
            + "prefetch(1) has the files, variables and exit statuses"
    }

    private static func wrapped(_ paragraph: String) -> String {
        var lines = [""]
        for word in paragraph.split(separator: " ") {
            if lines[lines.count - 1].count + word.count > 79 { lines.append("") }
            lines[lines.count - 1] += (lines[lines.count - 1].isEmpty ? "" : " ") + word
        }
        return lines.joined(separator: "\n")
    }

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
