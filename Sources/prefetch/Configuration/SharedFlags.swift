import ArgumentParser
import PrefetchModel

/// The flags that a command shares with `run`: configuration files and the environment set them.
///
/// The command's own properties say which: its groups, and flags with the meaning that they have
/// for `run`. A name alone decides nothing: `list --format` is no format of a list.
protocol FlagSharing {
    static var sharedRows: [FlagRow] { get }
}

extension OptionGroup: FlagSharing {
    static var sharedRows: [FlagRow] {
        (Value.self as? any FlagSharing.Type)?.sharedRows ?? Value.ownSharedRows
    }
}

extension Flags: FlagSharing {
    static var sharedRows: [FlagRow] { Rows.flags.all.map(\.row).filter(\.isConfigurable) }
}

extension ParsableArguments {
    /// Found by reflection, as the parser does.
    static var ownSharedRows: [FlagRow] {
        Mirror(reflecting: Self()).children.flatMap { child -> [FlagRow] in
            if let row = child.label.flatMap({ SharedFlags.single[$0] }) { return [row] }
            return (child.value as? any FlagSharing).map { type(of: $0).sharedRows } ?? []
        }
    }
}

enum SharedFlags {
    /// Single flags by the names of their stored properties. A command's help about them may
    /// differ.
    static let single: [String: FlagRow] = {
        var lock = ResultFlags.flags.lock.row
        // Exit status 0 would claim a change that was not made.
        lock.valuesOfRun = ["skip"]
        return [
            "_lock": lock, "_quiet": ShowingFlags.flags.quiet.row,
            "_allowsPartialLists": DiskFlags.flags.allowsPartialLists.row,
        ]
    }()

    /// Flags that have an effect only together with another one, by the command's name.
    private static let conditions: [String: [(flag: String, group: any FlagRows.Type)]] = [
        "get": [("--batch", InputFlags.self), ("--sink", BucketFlags.self)],
        "remove": [("--batch", InputFlags.self)], "prune": [("--unlisted", InputFlags.self)],
    ]

    /// The flags of a command that have no effect with its arguments, and the flag that they need.
    static func unmet(
        _ command: String, _ arguments: [String]
    ) -> [(flag: String, rows: [FlagRow])] {
        let options = arguments.prefix { $0 != "--" }
        return (conditions[command] ?? []).compactMap { flag, group in
            guard !options.contains(where: { $0 == flag || $0.hasPrefix("\(flag)=") }) else {
                return nil
            }
            let rows = group.allFlags.map(\.row)
            // It concerns URLs, too.
            let other = command == "prune" ? nil : KeyFlags.flags.ignoredQuery.row.name
            return (flag, rows.filter { $0.name != other })
        }
    }

    /// Refuses flags that have no effect.
    static func check(_ arguments: [String]) throws {
        guard let command = arguments.first, arguments.contains(where: { $0.hasPrefix("-") })
        else { return }
        for (flag, rows) in unmet(command, arguments) {
            let given = GivenFlags(arguments, of: rows).arguments
            if let row = rows.first(where: { given[$0.name] != nil }) {
                throw UserError(
                    .usage, "--\(row.name) needs \(flag)",
                    hint: "`prefetch \(command) --help` shows all flags")
            }
        }
    }
}
