import Pipeline
import PrefetchModel
import Reporting

/// The output of `plan`, on standard output: a line for each entry if they are wanted, and the
/// totals.
struct PlanOutput {
    private let json: Bool
    private let output = CallbackOutput()
    /// The hosts that the text names.
    private static let shownHosts = 10

    init(json: Bool) {
        self.json = json
    }

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

    /// Writes the totals.
    func finish(_ plan: RunPlan, exitStatus: Int32, isQuiet: Bool) throws {
        if json {
            output.write(JSONObject(plan, exitStatus: exitStatus))
        } else if !isQuiet {
            for line in PlanOutput.text(of: plan) { output.write(line) }
        }
        try output.finish()
    }

    private static func text(of plan: RunPlan) -> [String] {
        let counts = RunPlan.LineState.allCases.filter { plan[$0] > 0 }.map { state in
            let until = state == .blacklisted ? plan.nextRetry.map { " (until \($0))" } ?? "" : ""
            return "\(plan[state]) \(state.rawValue)\(until)"
        }
        var lines = [
            (plan.entries == 1 ? "1 entry" : "\(plan.entries) entries")
                + (counts.isEmpty ? "" : ": " + counts.joined(separator: ", "))
        ]
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

    fileprivate init(_ plan: RunPlan, exitStatus: Int32) {
        self.init()
        add("type", "plan")
        add("schema_version", 1)
        add("entries", plan.entries)
        var states = JSONObject()
        for state in RunPlan.LineState.allCases { states.add(state.rawValue, plan[state]) }
        add("states", states)
        add("blacklisted_until", plan.nextRetry)
        add("requests", plan.requests)
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
