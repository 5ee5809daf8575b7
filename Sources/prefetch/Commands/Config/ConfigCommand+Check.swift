import ArgumentParser
import ConfigurationFiles
import Pipeline
import PrefetchModel
import Reporting

extension ConfigCommand {
    struct CheckFiles: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "check",
            abstract: "Find all mistakes in configuration files.",
            discussion: """
                Checks the files that a run would read, or FILE alone: syntax, keys, values, every \
                profile and every list. Also names PREFETCH_* variables that look misspelled.
                """)

        @Argument(help: .value("file", "A configuration file."), completion: .file())
        var file: String?

        @OptionGroup var options: Flags<ConfigurationFlags>

        func validate() throws {
            guard file == nil || options.file == nil else {
                throw ValidationError("name one file, or --config FILE")
            }
        }

        func run() throws {
            var choice = ConfigurationChoice(options)
            if let file { choice.file = file }
            let files = try ConfigurationSearch(
                file: choice.file, trustsProject: choice.trustsProject
            ).files()
            var problems = files.flatMap(\.problems).map(\.userError)
            // After other mistakes only values that no other setting could make right: the
            // settings of wrong lines are missing.
            problems += ConfigurationCheck(files: files).problems().filter { problem in
                problems.isEmpty || UsageAdvice.isAboutValue(problem.message)
            }
            if file == nil { problems += EnvironmentSettings.problems }
            for problem in problems { problem.report() }
            guard problems.isEmpty else { throw UserError(.usage, "") }
            try LineWriter.print(
                files.isEmpty
                    ? ["no configuration file"]
                    : files.map { "\(printable($0.path)): no mistakes" })
        }
    }
}

/// The values of files with right keys.
private struct ConfigurationCheck {
    let files: [ConfigurationFile]

    /// The wrong values, without a profile and with each.
    func problems() -> [UserError] {
        var problems: [UserError] = []
        let profiles = EffectiveSettings(files: files).profiles.map(Optional.some)
        for profile in [nil] + profiles {
            let settings = EffectiveSettings(
                files: files, profile: profile,
                spellings: RunFlags.spellings + RunFlags.conflicts)
            problems += wrongValues(settings).filter { !problems.contains($0) }
        }
        return problems + wrongLists() + wrongHosts()
    }

    private func wrongHosts() -> [UserError] {
        var problems: [UserError] = []
        for host in EffectiveSettings(files: files).hosts {
            // Settings are also wrong together, and some values are read late.
            note(in: &problems) {
                _ = try HostSettings(host, host.settings).configuration(of: RunFlags.defaults)
            }
            for setting in host.settings {
                note(in: &problems) { _ = try HostSettings(host, [setting]) }
            }
        }
        return problems
    }

    /// Notes wrong usage, once; files that cannot be read are not mistakes of the configuration.
    private func note(in problems: inout [UserError], _ body: () throws -> Void) {
        do {
            try body()
        } catch {
            guard let problem = error as? UserError, problem.kind == .usage,
                !problems.contains(problem)
            else { return }
            problems.append(problem)
        }
    }

    /// Parses the settings, without the ones found to be wrong, until they are right.
    private func wrongValues(_ settings: EffectiveSettings) -> [UserError] {
        var problems: [UserError] = []
        var command = ConfiguredCommand(["run", "-"])
        command.added = ConfiguredCommand.added(settings, RunFlags.all.filter(\.isConfigurable))
        while true {
            do {
                let run = try RunCommand.parse(Array(command.arguments.dropFirst()))
                _ = try run.configuration(manifests: [], Invocation())
                return problems
            } catch {
                let parse: ([String]) throws -> Void = {
                    _ = try RunCommand.parse(Array($0.dropFirst()))
                }
                guard let cause = command.cause(of: error, parse: parse) else {
                    let text =
                        (error as? any ReportableError)?.userError.description
                        ?? RunCommand.message(for: error)
                    let origin = command.added.first?.origin ?? .variable("PREFETCH_*")
                    return problems + [UserError(at: origin, text)]
                }
                problems.append(cause.problem)
                command.added.remove(at: cause.index)
            }
        }
    }

    private func wrongLists() -> [UserError] {
        EffectiveSettings(files: files).lists.compactMap(ConfiguredLists.problem)
    }
}

extension EnvironmentSettings {
    /// Wrong values of switches, and names that look misspelled.
    fileprivate static var problems: [UserError] {
        var problems = misspellings.map { name, meant in
            UserError(at: .variable(name), "sets no flag", hint: "did you mean \(meant)?")
        }
        do {
            _ = try settings(RunFlags.all)
        } catch {
            problems.append(error)
        }
        return problems
    }
}
