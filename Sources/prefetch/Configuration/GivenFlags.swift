/// Flags among a command line's arguments, found without the parser.
struct GivenFlags {
    private let rows: [FlagRow]
    /// The sets of these flags that set the same.
    let spellings: [Set<String>]
    /// The arguments of each flag, by its name; a value may be a separate argument.
    private(set) var arguments: [String: [String]] = [:]
    /// The value that was given last, by the flag's name.
    private var values: [String: String] = [:]

    /// Looks for some flags in the arguments up to `--`. The parser takes no value that begins with
    /// a hyphen, so each such argument is a flag.
    init(_ arguments: [String], of rows: [FlagRow]) {
        self.rows = rows
        spellings = RunFlags.spellings(in: rows)
        let options = arguments.prefix { $0 != "--" }
        var index = options.startIndex
        while index < options.endIndex {
            let argument = options[index]
            index += 1
            guard argument.hasPrefix("-"), argument != "-" else { continue }
            let next = index < options.endIndex ? options[index] : nil
            let takesNext =
                argument.hasPrefix("--")
                ? readLong(argument, next) : readShort(argument.dropFirst(), argument, next)
            if takesNext { index += 1 }
        }
    }

    func contains(_ row: FlagRow) -> Bool { arguments[row.name] != nil }

    /// Whether a flag is given, or another one that sets the same.
    func containsSpelling(of name: String) -> Bool {
        arguments[name] != nil || containsOther(than: name, in: spellings)
    }

    /// Whether a given flag replaces this one of a file or variable.
    func replaces(_ name: String) -> Bool {
        containsSpelling(of: name) || containsOther(than: name, in: RunFlags.conflicts)
    }

    private func containsOther(than name: String, in sets: [Set<String>]) -> Bool {
        sets.contains { $0.contains(name) && $0.contains { arguments[$0] != nil } }
    }

    func value(of row: FlagRow) -> String? { values[row.name] }

    /// - Returns: Whether the next argument is the flag's value.
    private mutating func readLong(_ argument: String, _ next: String?) -> Bool {
        let parts = argument.dropFirst(2).split(
            separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        guard let name = parts.first, let row = rows.first(where: { $0.name == name })
        else { return false }
        return note(row, argument, value: parts.count > 1 ? String(parts[1]) : nil, next)
    }

    /// Reads `-j4`, `-j 4` or several switches like `-q4`.
    private mutating func readShort(
        _ letters: Substring, _ argument: String, _ next: String?
    ) -> Bool {
        for (offset, letter) in letters.enumerated() {
            guard let row = rows.first(where: { $0.short == letter }) else { continue }
            let rest = letters.dropFirst(offset + 1)
            if row.value != nil {
                return note(row, argument, value: rest.isEmpty ? nil : String(rest), next)
            }
            _ = note(row, argument, value: nil, nil)
        }
        return false
    }

    private mutating func note(
        _ row: FlagRow, _ argument: String, value: String?, _ next: String?
    ) -> Bool {
        let takesNext = row.value != nil && value == nil && next?.hasPrefix("-") == false
        arguments[row.name, default: []] += [argument] + (takesNext ? [next ?? ""] : [])
        values[row.name] = value ?? (takesNext ? next : nil)
        return takesNext
    }
}
