import ArgumentParser
import CacheStorage
import ConfigurationFiles
import PrefetchModel

/// The parser's completion scripts, corrected (argument-parser 1.8.2): `run` may be left out, as on
/// the command line. fish does not hang behind an option without its value. Names in the cache are
/// read by the installed program, even if `./prefetch` was typed. Lists are files, too.
enum CompletionScript {
    static let flag = "--generate-completion-script"

    /// The script for a shell; nil if the parser knows no such shell.
    static func make(for shell: String) -> String? {
        guard let known = CompletionShell(rawValue: shell) else { return nil }
        let text = Prefetch.completionScript(for: known)
        return switch known {
        case .fish:
            completingFiles(fish(text)) {
                $0.replacing(" -fka ", with: " -Fka ").replacing(" -rfka ", with: " -rFka ")
            }
        // `@` is a word of its own.
        case .bash:
            completingFiles(bash(text)) {
                $0 + "\n        [[ \"${prev}${cur}\" = *@* ]] || __prefetch_add_completions -f"
            }
        default: completingFiles(zsh(text)) { $0.replacing(")\"}'", with: ")\"; _files}'") }
        }
    }

    /// The installed program, without its errors.
    private static let program = "command prefetch"
    private static let silently = "2>/dev/null"

    /// The arguments with the completion ``CompletionKind/lists``.
    private static let lists = [
        "run -- positional@0", "plan -- positional@0", "export -- positional@1",
        "import -- positional@1", "prune -- --unlisted",
    ].map { "---completion \($0) " }

    /// Changes the lines that complete a list.
    private static func completingFiles(
        _ text: String, _ change: (String) -> String
    ) -> String {
        text.split(separator: "\n", omittingEmptySubsequences: false).map { line in
            lists.contains { line.contains($0) } ? change(String(line)) : String(line)
        }.joined(separator: "\n")
    }

    private static var commands: String { Prefetch.subcommands.sorted().joined(separator: "|") }

    private static func fish(_ text: String) -> String {
        let parse = "__prefetch_parse_subcommand "
        // `argparse` knows no flag with a dot, like --http1.1. When it fails, as without a value,
        // it leaves the tokens as they are.
        var lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        for (number, line) in lines.enumerated() {
            if line.contains(parse) {
                lines[number] = line.split(separator: " ", omittingEmptySubsequences: false)
                    .filter { !$0.contains(".") }.joined(separator: " ")
            } else if line.hasSuffix("-- $unparsed_tokens 2> /dev/null") {
                lines[number] += "; or break"
            } else if line.hasSuffix("command $tokens[1] $argv $tokens") {
                lines[number] = "    \(program) $argv $tokens \(silently)"
            }
        }
        // The flags of `run` belong to the program, too.
        if let run = lines.firstIndex(where: { $0.hasSuffix("case 'run'") }),
            let flags = lines[run + 1].firstRange(of: "\(parse)-r 1 "),
            let root = lines.firstIndex(where: { $0.hasSuffix("\(parse)0 'version' 'h/help'") })
        {
            lines[root] = "        \(parse)0 \(lines[run + 1][flags.upperBound...])"
        }
        return lines.map { line in
            guard line.contains("\"prefetch run\"") else { return line }
            return "\(line)\n\(line.replacing("\"prefetch run\"", with: "\"prefetch\""))"
        }.joined(separator: "\n")
    }

    private static func bash(_ text: String) -> String {
        text.replacing(
            "        # Offer subcommand completions\n",
            with: """
                        unparsed_words=("${subcommand}" "${unparsed_words[@]}")
                        ((COMP_CWORD == 1)) || COMPREPLY=()
                        _prefetch_run
                        ((COMP_CWORD == 1)) || return
                        # Offer subcommand completions

                """, maxReplacements: 1
        ).replacing(
            #""${COMP_WORDS[0]}" "${@}" "${words[@]}""#,
            with: #"\#(program) "${@}" "${words[@]}" \#(silently)"#)
    }

    private static func zsh(_ text: String) -> String {
        text.replacing(
            "    local -i ret=1\n    local -ar arg_specs=(\n        '--version[Show the version.]'\n",
            with: """
                    local -i ret=1
                    if [[ "${words[2]}" = -* ]] || {
                        ((CURRENT > 2)) && [[ "${words[2]}" != (\(commands)|help) ]]
                    }; then
                        _prefetch_run
                        return
                    fi
                    local -ar arg_specs=(
                        '--version[Show the version.]'

                """, maxReplacements: 1
        ).replacing(
            "        _describe -V subcommand subcommands && ret=0\n",
            with: """
                        _describe -V subcommand subcommands && ret=0
                        __prefetch_custom_complete \(lists[0])"${current_word_index}" 0 && ret=0
                        _files && ret=0

                """, maxReplacements: 1
        ).replacing(
            #""${command_name}" "${@}" "${command_line[@]}""#,
            with: #"\#(program) "${@}" "${command_line[@]}" \#(silently)"#)
    }
}

/// Names in the cache, which a shell offers as values of a flag.
///
/// The shell runs the program while the user types: it opens the cache that the words on the
/// command line select, creates none, and offers nothing when anything fails.
extension CompletionKind {
    /// The hosts of images, failures and remembered paces.
    static let storedHosts = custom { words, _, _ in
        names(on: words) { catalog in
            Set(
                try catalog.origins().map { $0.split(separator: "://").last.map(String.init) ?? $0 }
            )
        }
    }

    static let storedVariants = custom { words, _, _ in
        names(on: words) { catalog in Set(try catalog.variantNames().map(\.name)) }
    }

    /// The lists of configuration files, `@NAME`. bash completes the part behind `@`.
    static let lists = custom { words, index, _ in
        let isBehindMark =
            CompletionShell.requesting == .bash && words.indices.contains(index - 1)
            && words[index - 1] == "@"
        return configurationNames(on: words) { file in
            file.settings.compactMap { setting in
                guard case .list(let name) = setting.table else { return nil }
                return isBehindMark ? name : "@\(name)"
            }
        }
    }

    static let profiles = custom { words, _, _ in
        configurationNames(on: words) { Array($0.profiles.keys) }
    }

    private static func configurationNames(
        on words: [String], in read: (ConfigurationFile) -> [String]
    ) -> [String] {
        // The profile may be the word that is completed.
        var choice = ConfigurationChoice(
            GivenFlags(cacheFlags(in: words), of: CommandArguments.commonRows))
        choice.file = choice.file.map(inHome)
        let names = (try? choice.files())?.flatMap(read) ?? []
        return Set(names).filter { isPlain($0.drop { $0 == "@" }) }.sorted().map(written)
    }

    private static func names(
        on words: [String], in read: (CacheCatalog) throws -> Set<String>
    ) -> [String] {
        do {
            var configured = ConfiguredCommand(
                [StatsCommand.configuration.commandName ?? ""] + cacheFlags(in: words))
            try configured.configure()
            let options = try CacheOptions.parse(Array(configured.arguments.dropFirst()))
            return try read(options.catalog()).filter(isPlain).sorted().map(written)
        } catch {
            return []
        }
    }

    /// Whether a name means itself in every shell. bash expands the words that it chooses from.
    private static func isPlain(_ name: some StringProtocol) -> Bool {
        name.utf8.allSatisfy {
            $0.isLetter || $0.isDecimalDigit || "-._:[]~".utf8.contains($0)
        }
    }

    /// In zsh a description follows a colon.
    private static func written(_ name: String) -> String {
        CompletionShell.requesting == .zsh ? name.replacing(":", with: "\\:") : name
    }

    /// The flags on the command line that choose the cache. bash makes three words of
    /// `--cache-dir=DIR`, and quotation marks are part of a word.
    private static func cacheFlags(in words: [String]) -> [String] {
        let words = words.dropFirst().filter { $0 != "=" }.map { word in
            word.filter { !"\"'\\".contains($0) }
        }
        let rows = CommandArguments.commonRows
        let given = GivenFlags(words, of: rows)
        return rows.filter(given.contains).map { row in
            given.value(of: row).map { "--\(row.name)=\(inHome($0))" } ?? "--\(row.name)"
        }
    }

    /// A path as the shell would expand it.
    private static func inHome(_ path: String) -> String {
        guard path.hasPrefix("~/"), let home = environment("HOME") else { return path }
        return home + path.dropFirst()
    }
}
