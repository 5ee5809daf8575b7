import ArgumentParser

/// The lists of a run.
struct ListArguments: ParsableArguments {
    @Argument(
        help: ArgumentHelp(
            "Manifests, read in this order; URLs among them are read last.",
            valueName: "manifest"), completion: .file())
    var manifests: [String] = []

    @Option(RunFlags.list) var lists: [String]

    func validate() throws {
        guard manifests.isEmpty, lists.isEmpty else { return }
        throw ValidationError("Missing expected argument '<manifest> ...'")
    }
}
