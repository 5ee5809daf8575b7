import ArgumentParser
import Glibc
import PrefetchModel

/// Hints about wrong arguments, added to the parser's messages.
enum UsageAdvice {
    /// Ends of the parser's messages, each with the form of the value. Other flags describe their
    /// values in their help.
    private static let forms = [
        ("<duration>", Duration.quantityForm), ("<size>", ByteCount.quantityForm),
        ("<duration|date>", SinceArgument.form), ("<hh:mm>", "a time from 00:00 to 23:59"),
        ("<n/s>", "a rate like 2/s, 30/m or 100/h"),
        ("-status <list>", "statuses like 404,500-502 or 4xx, or none"),
        ("--accept-type <list>", "types like image/png or image/*"),
        ("--allow-formats <formats>", formats.joined(separator: ", ") + ", with commas between"),
        ("--lock <what>", "\(locks.joined(separator: ", ")) or wait=DURATION"),
    ]
    private static let formats = EncodedImageFormat.allCases.map(\.rawValue)
    private static let locks = ["fail", "skip", "wait"]

    /// A value that a flag refuses, and the words that it takes.
    private struct RefusedValue {
        let text: Substring
        private(set) var choices: [String] = []
        /// The message before the choices; all of it without any.
        private(set) var problem: String

        /// Reads the parser's message: its choices are in the first line, or in lines of their own.
        init?(_ message: String) {
            let lines = message.split(separator: "\n", omittingEmptySubsequences: false)
            let first = String(lines[0])
            guard UsageAdvice.isAboutValue(first), let start = first.firstRange(of: "'"),
                let end = first.firstRange(of: "' is invalid for '")
            else { return nil }
            text = first[start.upperBound..<max(start.upperBound, end.lowerBound)]
            problem = first
            if let list = first.firstRange(of: ". Please provide one of ") {
                problem = String(first[..<list.lowerBound])
                let item = "  - "
                choices =
                    first.hasSuffix(":")
                    ? lines.dropFirst().prefix { $0.hasPrefix(item) }
                        .map { String($0.dropFirst(item.count)) }
                    : first[list.upperBound...].split(separator: "'").enumerated()
                        .filter { $0.offset % 2 == 0 }.map { String($0.element) }
            } else if first.hasSuffix("-formats <formats>'") {
                choices = UsageAdvice.formats
            } else if first.hasSuffix("--lock <what>'") {
                choices = UsageAdvice.locks
            }
        }

        /// The choice that the value, or the first wrong word of a list, probably means.
        var meant: String? {
            let words = text.split(separator: ",").map { $0.lowercased() }
            guard let word = words.first(where: { !choices.contains($0) }) ?? words.first else {
                return nil
            }
            let starting = choices.filter { word.count >= 3 && $0.hasPrefix(word) }
            return choices.first { $0 == word } ?? choices.first { word.isNearly($0) }
                ?? (starting.count == 1 ? starting[0] : nil)
        }
    }

    /// Turns the parser's last line, `See 'prefetch run --help' for more information.`, into a
    /// hint, and adds the form of an invalid value.
    static func adding(to message: String) -> String {
        var lines = message.split(separator: "\n", omittingEmptySubsequences: false).map {
            String($0)
        }
        if let last = lines.last, last.hasPrefix("  See '"),
            let command = last.split(separator: "'").dropFirst().first
        {
            lines[lines.count - 1] = "hint: `\(command)` shows all flags"
        }
        if let first = lines.first { lines[0] = addingForm(to: first) }
        if let refused = RefusedValue(message), let meant = refused.meant {
            let rest = lines[0].dropFirst(refused.problem.count)
            lines[0] = "\(refused.problem): did you mean \(meant)?\(rest.dropFirst())"
        }
        return lines.joined(separator: "\n")
    }

    /// The parser's message on one line, with the form or the list of values.
    static func oneLine(_ message: String) -> String {
        let first = String(message.prefix { $0 != "\n" })
        guard let refused = RefusedValue(message), !refused.choices.isEmpty else {
            return addingForm(to: first)
        }
        let guess = refused.meant.map { "did you mean \($0)? " } ?? ""
        return "\(refused.problem): \(guess)it takes \(refused.choices.listed(with: "or"))"
    }

    static func isAboutValue(_ message: String) -> Bool { message.contains("is invalid for '") }

    /// The line with the value's form if it ends with the flag and the value's name:
    /// `The value '5x' is invalid for '--ttl <duration>'`.
    static func addingForm(to line: String) -> String {
        guard isAboutValue(line),
            let (ending, form) = forms.first(where: { line.hasSuffix("\($0.0)'") })
        else { return line }
        // A short number is refused where a forgotten unit would remove too much.
        let value = line.split(separator: "'").dropFirst().first ?? ""
        let lacksUnit = value.count < 10 && value.allSatisfy(\.isNumber)
        let wanted =
            switch ending {
            case "<size>" where lacksUnit: ByteCount.quantityFormWithUnit
            case _ where lacksUnit && ending.hasPrefix("<duration"): "\(form); write the unit"
            default: form
            }
        return "\(line): it takes \(wanted)"
    }

    /// Refuses an unknown command of a command, which the parser would call an unexpected argument,
    /// two cache directories, since it would use the last one, and flags without an effect.
    static func check(_ arguments: [String]) throws {
        let options = arguments.prefix { $0 != "--" }
        guard options.count(where: { $0 == "--cache-dir" || $0.hasPrefix("--cache-dir=") }) < 2
        else {
            throw UserError(.usage, "--cache-dir is given twice", hint: "a command uses one cache")
        }
        guard let command = Prefetch.subcommand(arguments.first) else { return }
        try SharedFlags.check(arguments)
        let names = Set(command.configuration.subcommands.map { $0._commandName })
        guard !names.isEmpty, arguments.count > 1, !arguments[1].hasPrefix("-"),
            !names.contains(arguments[1]), arguments[1] != "help"
        else { return }
        throw isUnknown(
            arguments[1], of: names, in: "prefetch \(arguments[0])",
            shown: "\(arguments[0]) \(arguments[1])")
    }

    private static func isUnknown(
        _ word: String, of names: Set<String>, in path: String, shown: String
    ) -> UserError {
        UserError(
            .usage, "\(shown): no such command",
            hint: CommandArguments.subcommand(like: word, of: names).map {
                "did you mean `\(path) \($0)`?"
            } ?? "`\(path) --help` lists the commands")
    }

    /// Refuses `help` about an unknown command, for which the parser would print the whole help.
    static func checkHelp(_ arguments: [String]) throws {
        guard arguments.first == "help" else { return }
        var command: any ParsableCommand.Type = Prefetch.self
        var path = "prefetch"
        for word in arguments.dropFirst() where !word.hasPrefix("-") && word != "help" {
            let names = command.configuration.subcommands.map { ($0._commandName, $0) }
            guard let (_, next) = names.first(where: { $0.0 == word }) else {
                throw isUnknown(word, of: Set(names.map(\.0)), in: path, shown: word)
            }
            command = next
            path += " \(word)"
        }
    }

    static func isFile(_ text: String) -> Bool {
        var status = stat()
        return stat(text, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
    }

    /// The hint for a list that has the name of the subcommand; nil without such a file.
    static func file(namedLikeSubcommand arguments: [String]) -> String? {
        guard let name = arguments.first, Prefetch.subcommands.contains(name), isFile(name) else {
            return nil
        }
        return "for the list in the file \(name): prefetch ./\(name)"
    }
}
