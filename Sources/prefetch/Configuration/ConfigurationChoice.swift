import ConfigurationFiles
import PrefetchModel

/// The configuration that the command line and the environment choose.
struct ConfigurationChoice {
    var file: String?
    var profile: String?
    var trustsProject: Bool

    static var rows: [FlagRow] {
        [
            ConfigurationFlags.flags.file.row, ConfigurationFlags.flags.profile.row,
            ConfigurationFlags.flags.trustsProject.row,
        ]
    }

    /// Whether a file or a profile is named.
    var isGiven: Bool { file != nil || profile != nil }

    init(_ flags: GivenFlags) {
        self.init(
            file: flags.value(of: ConfigurationFlags.flags.file.row),
            profile: flags.value(of: ConfigurationFlags.flags.profile.row),
            trustsProject: flags.contains(ConfigurationFlags.flags.trustsProject.row))
    }

    init(_ options: Flags<ConfigurationFlags>) {
        self.init(
            file: options.file, profile: options.profile, trustsProject: options.trustsProject)
    }

    private init(file: String?, profile: String?, trustsProject: Bool) {
        func value(_ given: String?, _ row: FlagRow) -> String? {
            given ?? row.environment.lazy.compactMap(environment).first
        }
        self.file = value(file, ConfigurationFlags.flags.file.row)
        self.profile = value(profile, ConfigurationFlags.flags.profile.row)
        self.trustsProject = trustsProject
    }

    /// The settings of all files, and of the variables of some flags.
    ///
    /// - Throws: `UserError` for a mistake, after printing all but the last one.
    func settings(
        _ rows: [FlagRow], spellings: [Set<String>], readsProject: Bool = true
    ) throws -> EffectiveSettings {
        let search = ConfigurationSearch(
            file: file, trustsProject: trustsProject, readsProject: readsProject || trustsProject)
        let files = try search.files()
        try ConfigurationChoice.refuse(files.flatMap(\.problems))
        let variables = try EnvironmentSettings.settings(rows)
        let settings = EffectiveSettings(
            files: files, variables: variables, profile: profile,
            spellings: spellings + RunFlags.conflicts)
        if let profile, !settings.profiles.contains(profile) {
            let known = settings.profiles
            throw UserError(
                .usage, "\(profile): no such profile",
                hint: known.isEmpty
                    ? "a profile is a table [profile.\(profile)] in a configuration file"
                    : "known are \(known.listed(with: "and"))")
        }
        return settings
    }

    /// The most mistakes that are printed.
    private static let shownProblems = 20

    private static func refuse(_ problems: [ConfigurationProblem]) throws {
        let shown = problems.prefix(shownProblems)
        guard let last = shown.last else { return }
        for problem in shown.dropLast() { problem.userError.report() }
        throw last.userError
    }
}
