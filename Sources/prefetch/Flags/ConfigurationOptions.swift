import ArgumentParser

/// Flags that choose configuration files.
///
/// They are evaluated before the parser runs, by ``ConfigurationSearch``: the files give arguments.
struct ConfigurationOptions: ParsableArguments {
    @Option(RunFlags.configurationFile) var file: String?
    @Option(RunFlags.profile) var profile: String?
    @Flag(RunFlags.trustsProject) var trustsProject: Bool
}
