import ArgumentParser
import Exporting
import PrefetchModel
import Reporting
import Sharding
import Upkeep

struct DoctorCommand: HostedCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor",
        abstract: "Look for problems with the cache and its environment.",
        discussion: """
            Prints one line per check: the directory, its owner, modes and file system, free space, the \
            database and its log, the lock's holder, the end of recent runs and files they left, hosts \
            that are given up, the limit of open files, and the libraries. A remedy follows each \
            problem. Nothing is created or changed, and a running run is not disturbed.

            With --online it also requests the root of the hosts with most images, at most \
            \(OriginProbe.originLimit) at once and for ten seconds, and compares clocks. It sends what \
            a run with the same flags and environment sends, and changes no cookie jar.

            Content files are not read; `prefetch verify` does that.

            Exit status: 0 no problem, 1 a problem was found, 2 a check could not be completed, 64 \
            wrong usage.

            Examples:
              prefetch doctor --online --proxy http://proxy.example:3128
              prefetch doctor --json | jq 'select(.state == "wrong")'
            """)

    @OptionGroup var cache: CacheOptions

    @Flag(help: "Also request the hosts with most images.")
    var online = false

    @Flag(help: "Print JSON Lines: one object per check, and a summary.")
    var json = false

    @OptionGroup(title: "\(FlagHeading.requests.rawValue) of --online") var requests:
        Flags<RequestFlags>

    func run(_ invocation: Invocation) throws {
        let path = try cache.path()
        var settings = RunSettings()
        let problem = try apply(invocation.hosts, to: &settings)
        if online {
            requests.warn()
            invocation.hosts.warn()
        }
        let checkUp = CacheCheckUp(settings.run, wallClock: WallClock.now)
        let descriptors = OpenFiles.left
        // For the list of loaded libraries. Few commands need these two.
        try? ArchiveLibrary.load()
        try? RegistrableDomain.load()
        var lines = LineWriter.standardOutput()
        var all: [Diagnosis] = []
        let marks = Marks()
        func report(_ diagnosis: Diagnosis) throws {
            all.append(diagnosis)
            if json {
                try lines.write(JSONObject(diagnosis))
            } else {
                for line in marks.lines(diagnosis) { try lines.write(line: line) }
            }
            try lines.flush()
        }
        try checkUp.run(
            path: path, isOnline: online && problem == nil, availableDescriptors: descriptors,
            report: report)
        if let problem { try report(problem) }
        if json { try lines.write(JSONObject(all, path: path)) }
        try lines.finish()
        if all.exitStatus != 0 { throw UserError(all.exitStatus == 1 ? .incomplete : .failed, "") }
    }

    /// - Returns: The problem of a file or variable that no run could use. The other checks follow.
    private func apply(
        _ hosts: ConfiguredHosts, to settings: inout RunSettings
    ) throws -> Diagnosis? {
        do {
            try requests.applyWithEnvironment(to: &settings)
            try hosts.apply(to: &settings.run, withHeaders: true)
            return nil
        } catch let error as any ReportableError where error.userError.kind != .usage {
            let error = error.userError
            return .wrong(.requests, error.description, remedy: error.hint)
        }
    }

    private struct Marks {
        private let isUnicode: Bool

        init() {
            // The order of `setlocale`.
            let name = ["LC_ALL", "LC_CTYPE", "LANG"].lazy.compactMap(environment).first
            let locale = (name ?? "").lowercased()
            isUnicode = locale.hasSuffix("utf-8") || locale.hasSuffix("utf8")
        }

        func lines(_ diagnosis: Diagnosis) -> [String] {
            let mark =
                switch diagnosis.state {
                case .ok: isUnicode ? "✓" : "ok     "
                case .wrong: isUnicode ? "✗" : "wrong  "
                case .unknown: isUnicode ? "?" : "unknown"
                }
            let name = diagnosis.check.rawValue
            let gap = String(repeating: " ", count: max(1, 13 - name.count))
            let line = printable("\(mark) \(name)\(gap)\(diagnosis.message)")
            guard let remedy = diagnosis.remedy else { return [line] }
            let indentation = String(repeating: " ", count: mark.count + 14)
            return [line, printable("\(indentation)\(isUnicode ? "→" : "->") \(remedy)")]
        }
    }
}

extension JSONObject {
    fileprivate init(_ diagnosis: Diagnosis) {
        self.init()
        add("type", "check")
        add("check", diagnosis.check.rawValue)
        add("state", diagnosis.state.rawValue)
        add("message", diagnosis.message)
        add("remedy", diagnosis.remedy)
    }

    fileprivate init(_ all: [Diagnosis], path: String) {
        self.init()
        add("type", "summary")
        add("cache_dir", path)
        add("checks", all.count)
        add("wrong", all.count { $0.state == .wrong })
        add("unknown", all.count { $0.state == .unknown })
        add("exit_status", Int(all.exitStatus))
    }
}
