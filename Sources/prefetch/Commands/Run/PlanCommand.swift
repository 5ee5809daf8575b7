import ArgumentParser
import PrefetchModel
import Reporting
import Sharding

/// `prefetch plan`
struct PlanCommand: InvokedCommand {
    static let configuration = CommandConfiguration(
        commandName: "plan",
        abstract: "Show what a run would do, without doing it.",
        discussion: """
            Takes the flags of `run`, and is `run --dry-run`. Sends no request, changes nothing \
            in the cache, and does not wait for a running run. Files are not checked for existence.

            States: fresh, new, stale, incomplete (a variant needs a request), derivable (made from \
            stored files), blacklisted, duplicate, excluded, invalid. -v prints the state of each \
            entry and its reason. Sizes and times are estimates from earlier runs, without \
            redirects and retries.

            With --shards it distributes the lists over N machines instead: the largest domains \
            first, each in one shard. A domain that is larger than a shard is split, and each part \
            gets a part of its limits. `run --plan FILE --shard I` takes a shard. Without -o it \
            prints the shard of each entry by the rule of `run --shard I/N`, one number a line; bad \
            lines are in shard 0.

            Exit status: that of the run if every transfer succeeded.

            Examples:
              prefetch plan images.txt
              prefetch plan images.txt -v | grep ^new
              prefetch plan images.txt --shards 64 -o plan.json
            """)

    @Flag(help: "Print one JSON object, with -v also one for each entry.")
    var json = false

    @Option(
        help: ArgumentHelp("Distribute the lists over this number of shards.", valueName: "n"))
    var shards: Int?

    @Option(
        help: ArgumentHelp(
            "How many of the shards run at the same time (default: all).", valueName: "n"))
    var machines: Int?

    @Option(
        name: .shortAndLong,
        help: ArgumentHelp("The file for the plan of --shards.", valueName: "file"),
        completion: .file())
    var output: String?

    @OptionGroup var options: RunCommand

    func validate() throws {
        if output != nil, shards == nil { throw ValidationError("-o needs --shards") }
        if shards != nil, output == nil, json || machines != nil {
            throw ValidationError("--json and --machines need -o FILE with --shards")
        }
        if let shards, !Shard.counts.contains(shards) {
            throw ValidationError("--shards must be between 1 and \(Shard.counts.upperBound)")
        }
        if let machines {
            guard let shards else { throw ValidationError("--machines needs --shards") }
            guard (1...shards).contains(machines) else {
                throw ValidationError("--machines must be between 1 and --shards (\(shards))")
            }
        }
        if shards != nil, options.sharding.shard != nil {
            throw ValidationError("--shards and --shard cannot be combined")
        }
    }

    func run(_ invocation: Invocation) throws {
        guard let shards else { return try options.plan(json: json, invocation) }
        guard let output else { return try options.printShards(shards, invocation) }
        let planning = ShardPlanning(shards: shards, machines: machines, path: output)
        let plan = try options.plan(planning, invocation)
        if json {
            var object = JSONObject()
            object.add("type", "summary")
            object.add("shards", plan.shards)
            object.add("entries", plan.entries)
            object.add("loads", plan.loads)
            object.add("split", plan.split.count)
            try LineWriter.print(object)
        } else if !options.showing.quiet {
            for line in planning.text(plan) { StandardError.write("prefetch: \(printable(line))") }
        }
    }
}
