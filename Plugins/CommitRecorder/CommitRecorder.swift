import PackagePlugin

/// Has `Scripts/record-commit` run before each build.
///
/// `Context.gitInformation` of the manifest would be simpler, but SwiftPM keeps what a manifest has
/// evaluated to for as long as its text stays the same, also after `rm -rf .build`: builds of later
/// commits told of an earlier one.
@main
struct CommitRecorder: BuildToolPlugin {
    func createBuildCommands(context: PluginContext, target: any Target) throws -> [Command] {
        let folder = context.pluginWorkDirectoryURL
        return [
            .prebuildCommand(
                displayName: "Recording the commit",
                executable: context.package.directoryURL.appending(path: "Scripts/record-commit"),
                arguments: [folder.path], outputFilesDirectory: folder)
        ]
    }
}
