import Glibc
import PrefetchModel

/// Rewrites arguments that the parser would misread.
enum CommandArguments {
    /// Turns `-V` into `--version`, and moves flags of all commands, like `--cache-dir`, behind the
    /// subcommand. The parser would take `stats` in `prefetch --cache-dir DIR stats` for a
    /// manifest.
    static func normalized(_ arguments: [String], subcommands: Set<String>) -> [String] {
        if arguments == ["-V"] { return ["--version"] }
        let arguments = givingAllNames(arguments)
        let end = arguments.firstIndex(of: "--") ?? arguments.endIndex
        var (options, rest): ([String], [String]) = ([], [])
        var index = 0
        while index < end {
            let length = lengthOfCommonFlag(arguments[index..<end])
            // Behind the subcommands, at most two, the parser finds the flag.
            guard length > 0, rest.allSatisfy({ !$0.hasPrefix("-") }), rest.count < 2 else {
                rest.append(arguments[index])
                index += 1
                continue
            }
            options += arguments[index..<(index + length)]
            index += length
        }
        guard let first = rest.first, subcommands.contains(first) else { return arguments }
        return rest + options + arguments[end...]
    }

    /// Gives `--key-ignore-query` without names the value `*`. The parser would take the next
    /// argument, perhaps a manifest, for the value.
    private static func givingAllNames(_ arguments: [String]) -> [String] {
        let flag = "--key-ignore-query"
        guard arguments.contains(flag) else { return arguments }
        let end = arguments.firstIndex(of: "--") ?? arguments.endIndex
        return arguments.indices.map { index in
            let (next, argument) = (index + 1, arguments[index])
            let hasNames = next < end && areNames(arguments[next])
            return index < end && argument == flag && !hasNames ? "\(flag)=*" : argument
        }
    }

    /// Whether an argument behind `--key-ignore-query` is its value: neither a flag nor a list, a
    /// URL or a file.
    private static func areNames(_ argument: String) -> Bool {
        !argument.hasPrefix("-") && !ConfiguredLists.isName(argument)
            && !ManifestSequence.isURL(argument) && access(argument, F_OK) != 0
            && IgnoredQuery(argument) != nil
    }

    /// The number of arguments that a flag of all commands takes, with its value; 0 for any other.
    private static func lengthOfCommonFlag(_ arguments: ArraySlice<String>) -> Int {
        guard let first = arguments.first else { return 0 }
        for row in commonRows {
            let name = "--\(row.name)"
            if first == name { return row.value == nil ? 1 : arguments.count > 1 ? 2 : 0 }
            if row.value != nil, first.hasPrefix("\(name)=") { return 1 }
        }
        return 0
    }

    /// The flags of all commands, which choose the cache and the configuration.
    static var commonRows: [FlagRow] { [CacheFlags.flags.directory.row] + ConfigurationChoice.rows }

    /// Whether the arguments request the short help: `-h` of the program or of `run`.
    static func wantShortHelp(_ arguments: [String], subcommands: Set<String>) -> Bool {
        guard let first = arguments.first, first == "run" || !subcommands.contains(first) else {
            return false
        }
        return arguments.prefix { $0 != "--" }.contains("-h")
    }

    /// A subcommand that a word resembles or means; nil without one.
    static func subcommand(like word: String, of subcommands: Set<String>) -> String? {
        let meant = (synonyms[word] ?? []).first(where: subcommands.contains)
        return meant ?? subcommands.sorted().first { word.isNearly($0) }
    }

    /// The names that other programs give to such commands.
    private static let synonyms = [
        "ls": ["list"], "show": ["list"], "rm": ["remove", "clear"], "remove": ["rm", "clear"],
        "del": ["remove", "rm", "clear"], "delete": ["remove", "rm", "clear"],
        "add": ["put", "set"],
        "clean": ["prune", "clear"], "gc": ["prune"], "check": ["verify"], "fsck": ["verify"],
        "info": ["stats"], "fetch": ["run"], "log": ["history"],
        "configuration": ["config"], "settings": ["config"],
    ]
}
