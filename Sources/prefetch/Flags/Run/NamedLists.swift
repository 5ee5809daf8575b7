import ArgumentParser

/// The lists of a run that a flag names.
struct NamedLists: ParsableArguments {
    @Option(RunFlags.list) var lists: [String]
}
