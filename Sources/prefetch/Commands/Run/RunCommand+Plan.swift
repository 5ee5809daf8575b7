import CacheStorage
import Pipeline
import PrefetchModel
import Reporting
import Sharding
import Threading

extension RunCommand {
    /// Prints the plan of the run, and ends the process with the exit status of such a run.
    func plan(json: Bool, _ invocation: Invocation) throws {
        let shard = try sharding.choice()
        var reader = try openManifests(keepingColumns: false, shard, invocation)
        var configuration = try fittedConfiguration(reader, runLimits.limits(), shard, invocation)
        let source = try cache.existingCatalog()
        if let source { configuration.setAhead(by: source, at: WallClock.now()) }
        let isQuiet = showing.quiet
        let emptyLists = Monitor<[EmptyList]>([])
        reader.report = { event in
            switch event {
            case .empty(let list): emptyLists.withLock { $0.append(list) }
            case .note(let text, let remedy) where !isQuiet:
                StandardError.message(text, hint: remedy)
            default:
                if !isQuiet { ListEvent.tellOfCopies(event) }
            }
        }
        try reader.open(by: StoredLists(source?.directory))
        let output = PlanOutput(json: json)
        var planner = RunPlanner(
            configuration, source: source,
            seed: try disk.openedSeed(for: source?.directory, isQuiet: isQuiet),
            temporaryFolder: environment("TMPDIR") ?? "/tmp", at: WallClock.now(),
            receive: showing.verbose ? output.write : nil)
        let plan = try planner.plan(reader)
        let empty = emptyLists.withLock { $0 }
        let fails = !empty.isEmpty && !result.allowsEmptyLists
        if !empty.isEmpty, fails || !isQuiet {
            let (text, hint) = EmptyList.message(empty)
            StandardError.message(text, hint: hint)
        }
        let status = fails ? 1 : plan.exitStatus
        try output.finish(plan, exitStatus: status, isQuiet: isQuiet)
        ProcessEnd.leave(status)
    }

    /// Prints the shard of each entry among `count`, as `--shard I/N` chooses it.
    func printShards(_ count: Int, _ invocation: Invocation) throws {
        try RegistrableDomain.load(for: "--shards")
        var reader = try openManifests(keepingColumns: false, nil, invocation)
        // Machines that only count lines may have no cache directory. An index may name URLs.
        let directory =
            reader.unopenedLists > 0
            ? try cache.existingDirectory() : try? cache.existingDirectory()
        try reader.open(by: StoredLists(directory))
        let selector = ShardSelector(count: count)
        var lines = LineWriter.standardOutput()
        while let batch = try reader.nextBatch() {
            let shards = batch.text.withUnsafeBytes { text in
                batch.records.map { record -> Int in
                    // Shard 0 reports bad lines, not lines that a selection excludes.
                    if record.problem >= 0,
                        batch.problems[record.problem].failure.reason != .notSelected
                    {
                        return 0
                    }
                    let url = UnsafeRawBufferPointer(rebasing: text[record.url])
                    return selector.shards(of: url)[0]
                }
            }
            for shard in shards { try lines.write(line: "\(shard)") }
        }
        try lines.finish()
    }

    func plan(_ planning: ShardPlanning, _ invocation: Invocation) throws -> ShardPlan {
        try RegistrableDomain.load(for: "--shards")
        var reader = try openManifests(keepingColumns: false, nil, invocation)
        var files = self.files(reader.names)
        files.written.append(WrittenFiles.Use(path: planning.path, name: "-o"))
        try files.check(cache)
        let directory = try cache.existingDirectory()
        try reader.open(by: StoredLists(directory))
        let catalog = directory.flatMap { try? CacheCatalog(directory: $0) }
        return try planning.run(
            over: &reader, hosts: catalog,
            rules: try configuration(manifests: reader.names, invocation).hosts)
    }
}
