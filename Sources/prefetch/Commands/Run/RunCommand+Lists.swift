import ArgumentParser
import CacheStorage
import Manifests
import Pipeline
import PrefetchModel
import Reporting
import Sharding

extension RunCommand {
    func validate() throws {
        guard manifests.isEmpty, named.lists.isEmpty else { return }
        throw ValidationError("Missing expected argument '<manifest> ...'")
    }

    /// Opens the lists of the command line, except for those by URL.
    ///
    /// - Throws: also when the plan of the shard is one of other lists.
    func openManifests(
        keepingColumns keepsColumns: Bool, _ shard: ShardChoice?, _ invocation: Invocation
    ) throws -> ManifestSequence {
        var options = input.manifestOptions(
            variants: try processing.variantSet(), keepsColumns: keepsColumns,
            selection: processing.filters.combined)
        options.hostDefaults = invocation.hosts.defaults
        options.followsIndexes = true
        options.shard = shard?.filter
        let reader = try ManifestSequence(
            arguments: manifests, lists: named.lists, options: options,
            configured: invocation.lists)
        if let name = try shard?.plan?.difference(from: reader.names) {
            throw UserError(
                "\(printable(name)): \(sharding.plan ?? "") is a plan of other lists",
                hint: "`prefetch plan --shards N -o FILE` makes one of these lists")
        }
        return reader
    }
}
