import ArgumentParser
import CacheStorage
import Manifests
import Pipeline

extension RunCommand {
    func validate() throws {
        if responses.isWarmingOnly, freshness.offline || freshness.refresh == .none {
            throw ValidationError(
                "--no-store and --method head request every image, and cannot be combined with "
                    + "--offline or --refresh none")
        }
        guard manifests.isEmpty, named.lists.isEmpty else { return }
        throw ValidationError("Missing expected argument '<manifest> ...'")
    }

    /// Opens the lists of the command line, except for those by URL.
    func openManifests(keepingColumns keepsColumns: Bool) throws -> ManifestSequence {
        var options = try input.manifestOptions(
            variants: try variantSet(), keepsColumns: keepsColumns,
            selection: try filters.selection)
        options.hostDefaults = ConfiguredHosts.defaults
        options.followsIndexes = true
        return try ManifestSequence(
            arguments: manifests, lists: named.lists, options: options)
    }

    /// Opens the lists by URL.
    func opener(
        _ configuration: RunConfiguration, _ directory: CacheDirectory
    ) -> any ListOpening {
        freshness.offline
            ? StoredLists(directory)
            : ListFetcher(configuration, in: directory, wallClock: WallClock.now)
    }
}
