import ArgumentParser
import ConfigurationFiles
import PrefetchModel

extension ConfiguredCommand {
    struct WrongSetting {
        /// The setting's index among the added ones.
        let index: Int
        let problem: UserError
    }

    /// The failure that names the place of a wrong setting; nil if the error has another cause.
    ///
    /// `parse` parses arguments. It is called only for errors that don't name a flag.
    func failure(for error: any Error, parse: ([String]) throws -> Void) -> UserError? {
        if let cause = cause(of: error, parse: parse) { return cause.problem }
        guard !added.isEmpty, !(error is UserError),
            let (text, _) = ConfiguredCommand.usageError(error), isRight(given, parse)
        else { return nil }
        return UserError(.usage, text, hint: ConfiguredCommand.advice)
    }

    /// The setting that causes wrong usage: the first one that the message names by its flag, else
    /// the first one that is refused alone.
    func cause(of error: any Error, parse: ([String]) throws -> Void) -> WrongSetting? {
        guard !added.isEmpty, let (text, hint) = ConfiguredCommand.usageError(error) else {
            return nil
        }
        func cause(_ index: Int, hint: String?) -> WrongSetting {
            WrongSetting(
                index: index,
                problem: UserError(
                    at: added[index].origin, text, hint: hint ?? ConfiguredCommand.advice))
        }
        let named = added.indices.filter { added[$0].isNamed(in: text) }
        if let first = named.first {
            let others = named.dropFirst().map {
                "--\(added[$0].row.name) is set in \(added[$0].origin)"
            }
            return cause(first, hint: others.isEmpty ? hint : others.joined(separator: ", "))
        }
        // The user may have made the mistake.
        guard !(error is UserError), isRight(given, parse) else { return nil }
        let alone = added.indices.first { index in
            var command = ConfiguredCommand(given)
            command.added = [added[index]]
            return !isRight(command.arguments, parse)
        }
        return alone.map { cause($0, hint: hint) }
    }

    private static let advice = "`prefetch config show --origins` lists the settings in force"

    private func isRight(_ arguments: [String], _ parse: ([String]) throws -> Void) -> Bool {
        (try? parse(arguments)) != nil
    }

    /// The message and hint of wrong usage; nil for any other error.
    private static func usageError(_ error: any Error) -> (text: String, hint: String?)? {
        if let failure = error as? UserError {
            // An error with a subject names its place.
            guard failure.kind == .usage, failure.subject.isEmpty else { return nil }
            return (failure.description, failure.hint)
        }
        guard Prefetch.exitCode(for: error) == .validationFailure else { return nil }
        let text = UsageAdvice.oneLine(Prefetch.message(for: error))
        // Its suggestion is no cause.
        return text.hasPrefix("Unknown option") ? nil : (text, nil)
    }
}

extension ConfiguredCommand.Added {
    /// Whether a message names the flag, or, of several variants, this one.
    fileprivate func isNamed(in text: String) -> Bool {
        guard row.name == EncodingFlags.flags.variants.row.name else {
            return Self.names(text, "--\(row.name)")
                || row.short.map { Self.names(text, "-\($0)") } == true
        }
        let name = value.prefix { $0 != "=" }
        return Self.names(text, "variant \(name)")
            || Self.names(text, "--variant") && !text.hasPrefix("--variant ")
    }

    /// Whether a text has a flag in it that isn't the beginning or end of another.
    private static func names(_ text: String, _ flag: String) -> Bool {
        text.ranges(of: flag).contains { range in
            let before = text[..<range.lowerBound].last
            let after = text[range.upperBound...].first
            return before != "-" && before?.isLetter != true
                && after?.isLetter != true && after?.isNumber != true && after != "-"
        }
    }
}
