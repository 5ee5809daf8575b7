import PackagePlugin

/// Runs `Scripts/record-commit` before each build.
///
/// `Context.gitInformation` in the manifest would be simpler. But SwiftPM caches an evaluated
/// manifest until its text changes, even across `rm -rf .build`, so later builds would report an
/// earlier commit.
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
