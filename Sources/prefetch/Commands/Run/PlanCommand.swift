import ArgumentParser
import CacheStorage
import Glibc
import Hashing
import Manifests
import Pipeline
import PrefetchModel
import Reporting
import Sharding

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

    @Option(help: .value("n", "Distribute the lists over this number of shards."))
    var shards: Int?

    @Option(help: .value("n", "How many of the shards run at the same time (default: all)."))
    var machines: Int?

    @Option(
        name: .shortAndLong,
        help: .value("file", "The file for the plan of --shards."),
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

/// The output of `plan`, on standard output: a line for each entry if they are wanted, and the
/// totals.
struct PlanOutput {
    let json: Bool
    private let output = CallbackOutput()
    /// The hosts that the text names.
    private static let shownHosts = 10

    func write(_ line: RunPlan.PlannedLine) {
        if json {
            output.write(JSONObject(line))
        } else {
            let url = RedactedURL(line.url).description
            output.write(
                "\(line.state.rawValue) \(printable(url))"
                    + (line.message.map { ": \(printable($0))" } ?? ""))
        }
    }

    func finish(
        _ plan: RunPlan, _ skipped: SkippedRows, exitStatus: Int32, isQuiet: Bool
    ) throws {
        if json {
            output.write(JSONObject(plan, skipped, exitStatus: exitStatus))
        } else if !isQuiet {
            for line in PlanOutput.text(of: plan, skipped) { output.write(line) }
        }
        try output.finish()
    }

    private static func text(of plan: RunPlan, _ skipped: SkippedRows) -> [String] {
        let counts = RunPlan.LineState.allCases.filter { plan[$0] > 0 }.map { state in
            let until = state == .blacklisted ? plan.nextRetry.map { " (until \($0))" } ?? "" : ""
            return "\(plan[state]) \(state.rawValue)\(until)"
        }
        var lines = [
            (plan.entries == 1 ? "1 entry" : "\(plan.entries) entries")
                + (counts.isEmpty ? "" : ": " + counts.joined(separator: ", "))
        ]
        if skipped.count > 0 {
            lines.append(
                "\(counted(skipped.count, "row")) without a URL skipped, "
                    + "first \(printable(skipped.first))")
        }
        if plan.withoutRoom > 0 {
            lines.append(
                "\(counted(plan.withoutRoom, "image")) not requested: --max-size leaves no room")
        }
        guard plan.requests > 0 else { return lines + ["no requests"] }
        lines.append(
            "\(counted(plan.requests, "request")) to \(counted(plan.hosts.count, "host"))"
                + (plan.left > 0 ? "; --limit leaves \(plan.left) of them" : ""))
        for host in plan.hosts.prefix(shownHosts) {
            var parts = [counted(host.requests, "request")]
            if let bytes = host.expectedBytes, bytes > 0 { parts.append("\(ByteCount(bytes))") }
            if let time = host.expectedTime { parts.append(durationText(time)) }
            if let end = host.coolingUntil { parts.append("not before \(end)") }
            lines.append("  \(printable(host.name)): \(parts.joined(separator: ", "))")
        }
        if plan.hosts.count > shownHosts {
            lines.append("  and \(counted(plan.hosts.count - shownHosts, "host")) more (--json)")
        }
        return lines
    }
}

extension JSONObject {
    fileprivate init(_ line: RunPlan.PlannedLine) {
        self.init()
        add("type", "entry")
        add("manifest", line.manifest)
        add("line", line.line)
        add("url", RedactedURL(line.url).description)
        add("key", RedactedURL(line.key).description)
        add("state", line.state.rawValue)
        add("message", line.message)
    }

    fileprivate init(_ plan: RunPlan, _ skipped: SkippedRows, exitStatus: Int32) {
        self.init()
        add("type", "plan")
        add("schema_version", 1)
        add("entries", plan.entries)
        add("skipped", skipped.count)
        var states = JSONObject()
        for state in RunPlan.LineState.allCases { states.add(state.rawValue, plan[state]) }
        add("states", states)
        add("blacklisted_until", plan.nextRetry)
        add("requests", plan.requests)
        add("without_room", plan.withoutRoom)
        add("left", plan.left)
        add("exit_status", Int(exitStatus))
        add(
            "hosts",
            plan.hosts.map { host in
                var object = JSONObject()
                object.add("host", host.name)
                object.add("requests", host.requests)
                object.add("new", host.new)
                object.add("expected_bytes", host.expectedBytes)
                object.add("expected_ms", host.expectedTime)
                object.add("cooling_until", host.coolingUntil)
                return object
            })
    }
}

/// `plan --shards`: counts the entries of each domain in one pass, and writes a plan.
struct ShardPlanning {
    let shards: Int
    let machines: Int?
    let path: String

    /// Reads all entries, and writes the plan. `hosts` is the cache that knows the pace of hosts;
    /// domains are split by `rules`.
    func run(
        over reader: inout ManifestSequence, hosts: CacheCatalog?, rules: HostRules
    ) throws -> ShardPlan {
        var planner = ShardPlanner()
        var badLines = 0
        while let batch = try reader.nextBatch() {
            badLines += batch.records.count { $0.problem >= 0 }
            batch.text.withUnsafeBytes { text in
                for record in batch.records where record.problem < 0 {
                    planner.add(UnsafeRawBufferPointer(rebasing: text[record.url]))
                }
            }
        }
        if badLines > 0 {
            StandardError.write("prefetch: \(counted(badLines, "bad line")), which shard 0 reports")
        }
        let lists = try reader.names.map {
            ShardPlan.List(name: $0, identity: try ShardPlan.List.Identity(list: $0))
        }
        let paces = try hosts.map(ShardPlanning.times) ?? [:]
        let plan = planner.plan(
            shards: shards, machines: machines, lists: lists, mostParts: rules.mostParts
        ) { domain, count in
            paces[domain].map { $0 * count }
        }
        try OutputFile.replace(path, with: plan.file)
        return plan
    }

    /// The time of a request by domain, at the slowest pace that a host of it has accepted.
    private static func times(_ catalog: CacheCatalog) throws -> [String: Duration] {
        var times: [String: Duration] = [:]
        for state in try catalog.hosts.all(at: WallClock.now()) {
            let answered = state.latency.map { $0 / Double(state.concurrency ?? 1) }
            guard let time = [answered, state.interval].compactMap(\.self).max() else { continue }
            var url = state.host + "/"
            let domain = url.withUTF8 { bytes in
                ShardSelector.domain(ofURL: UnsafeRawBufferPointer(bytes))
            }
            times[domain] = max(times[domain] ?? .zero, time)
        }
        return times
    }

    /// `plan.json: 8 shards of 124990 to 125010 entries; 2 domains in several shards`
    func text(_ plan: ShardPlan) -> [String] {
        let least = plan.loads.min() ?? 0
        let most = plan.loads.max() ?? 0
        var text = "\(path): \(counted(plan.shards, "shard")) of "
        text += least == most ? "\(most) entries each" : "\(least) to \(most) entries"
        if !plan.split.isEmpty {
            text += "; \(counted(plan.split.count, "domain")) in several shards"
        }
        var lines = [text]
        if let slowest = plan.times?.max() {
            lines.append(
                "  the slowest domain takes \(durationText(slowest)) at its pace in earlier runs")
        }
        return lines
    }
}

extension ShardPlan.List.Identity {
    /// The hashed bytes at each end: reading all of a large list twice would take minutes.
    private static let endBytes = 64 << 10

    /// The identity of a list in a regular file; nil for other lists.
    init?(list path: String) throws {
        guard path != "-", path != EntryBatch.nameOfArguments, !ManifestSequence.isURL(path) else {
            return nil
        }
        func unreadable(_ code: Int32) -> UserError {
            UserError(path, "cannot read: \(String(cString: strerror(code)))")
        }
        let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw unreadable(errno) }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw unreadable(errno) }
        guard status.st_mode & S_IFMT == S_IFREG else { return nil }
        let size = Int(status.st_size)
        var bytes: [UInt8] = []
        let end = max(ShardPlan.List.Identity.endBytes, size - ShardPlan.List.Identity.endBytes)
        for start in [0, end] where start < size {
            let length = min(ShardPlan.List.Identity.endBytes, size - start)
            var part = [UInt8](repeating: 0, count: length)
            let count = pread(descriptor, &part, length, off_t(start))
            guard count == length else { throw unreadable(count < 0 ? errno : EIO) }
            bytes += part
        }
        let digest = bytes.withUnsafeBytes { SHA256Hasher().digest(of: $0) }
        self.init(bytes: size, digest: digest.description)
    }
}

extension ShardPlan {
    /// Returns the name of a list that is not one of the plan's, or of a planned one that is not
    /// read; nil if the lists are the same. Only regular files are compared.
    func difference(from names: [String]) throws -> String? {
        let known = lists.compactMap(\.identity)
        var read: [List.Identity] = []
        for name in names {
            guard let identity = try List.Identity(list: name) else { continue }
            guard known.contains(identity) else { return name }
            read.append(identity)
        }
        return lists.first { list in list.identity.map { !read.contains($0) } ?? false }?.name
    }
}
