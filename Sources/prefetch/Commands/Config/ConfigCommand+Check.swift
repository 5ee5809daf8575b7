import ArgumentParser
import ConfigurationFiles
import Glibc
import Pipeline
import PrefetchModel
import Reporting

extension ConfigCommand {
    /// `prefetch config check`
    struct CheckFiles: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "check",
            abstract: "Find all mistakes in configuration files.",
            discussion: """
                Checks the files that a run would read, or FILE alone: syntax, keys, values, every \
                profile and every list. Also names PREFETCH_* variables that look misspelled.
                """)

        @Argument(
            help: ArgumentHelp("A configuration file.", valueName: "file"), completion: .file())
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
            var problems = files.flatMap(\.problems)
            // After other mistakes only values that no other setting could make right: the
            // settings of wrong lines are missing.
            problems += ConfigurationCheck(files).problems().filter { problem in
                problems.isEmpty || UsageAdvice.isAboutValue(problem.message)
            }
            if file == nil { problems += EnvironmentSettings.problems }
            for problem in problems { problem.userError.report() }
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
    private let files: [ConfigurationFile]

    init(_ files: [ConfigurationFile]) {
        self.files = files
    }

    /// The wrong values, without a profile and with each.
    func problems() -> [ConfigurationProblem] {
        var problems: [ConfigurationProblem] = []
        let profiles = EffectiveSettings(files: files).profiles.map(Optional.some)
        for profile in [nil] + profiles {
            let settings = EffectiveSettings(
                files: files, profile: profile, spellings: RunFlags.spellings)
            problems += wrongValues(settings).filter { !problems.contains($0) }
        }
        return problems + wrongLists() + wrongHosts()
    }

    private func wrongHosts() -> [ConfigurationProblem] {
        var problems: [ConfigurationProblem] = []
        let run = RunConfiguration(userAgent: "", manifests: [], codecWorkers: 1)
        for host in EffectiveSettings(files: files).hosts {
            // Settings are also wrong together, and some values are read late.
            do {
                _ = try ConfiguredHosts.parsed(host, host.settings).host.configuration(of: run)
            } catch let problem as ConfigurationProblem {
                problems.append(problem)
            } catch {}
            for setting in host.settings {
                do throws(ConfigurationProblem) {
                    _ = try ConfiguredHosts.parsed(host, [setting])
                } catch  where !problems.contains(error) {
                    problems.append(error)
                } catch {}
            }
        }
        return problems
    }

    /// Parses the settings, without the ones found to be wrong, until they are right.
    private func wrongValues(_ settings: EffectiveSettings) -> [ConfigurationProblem] {
        var problems: [ConfigurationProblem] = []
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
                    return problems + [ConfigurationProblem(origin: origin, message: text)]
                }
                problems.append(cause.problem)
                command.added.remove(at: cause.index)
            }
        }
    }

    private func wrongLists() -> [ConfigurationProblem] {
        EffectiveSettings(files: files).lists.compactMap(ConfiguredLists.problem)
    }
}

extension EnvironmentSettings {
    /// Wrong values of switches, and names that look misspelled.
    fileprivate static var problems: [ConfigurationProblem] {
        var problems = misspellings.map { name, meant in
            ConfigurationProblem(
                origin: .variable(name), message: "sets no flag", hint: "did you mean \(meant)?")
        }
        do throws(ConfigurationProblem) {
            _ = try settings(RunFlags.all)
        } catch {
            problems.append(error)
        }
        return problems
    }
}
