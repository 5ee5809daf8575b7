import ArgumentParser
import Glibc
import Pipeline
import PrefetchModel
import Reporting
import Upkeep

/// `prefetch doctor`
struct DoctorCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor",
        abstract: "Look for what keeps the cache from working.",
        discussion: """
            Prints a line for each thing that it looks at: the directory, its owner, modes and file system, free space \
            against what runs store, the database and its log, who holds the lock, how runs ended, what they left, \
            hosts that are given up, the limit of open files and the libraries. Below what is wrong stands what mends \
            it. Nothing is made or changed, and a run that goes on is not disturbed.

            With --online it also requests the roots of the hosts of most images, at most \(OriginProbe.originLimit), \
            all at once and for at most ten seconds, and compares the clock with theirs. Proxies are those of the \
            environment.

            Content files are not read; prefetch verify does that.

            Exit status: 0 all is well, 1 something is wrong, 2 not all can be told, 64 wrong usage.

            Examples:
              prefetch doctor --online
              prefetch doctor --json | jq 'select(.state == "wrong")'
            """)

    @OptionGroup var cache: CacheOptions

    @Flag(help: "Ask origins of the cache, too.")
    var online = false

    @Flag(help: "Print JSON Lines: an object for each line, and a summary.")
    var json = false

    func run() throws {
        let path = try cache.path()
        var configuration = RunConfiguration(
            userAgent: "prefetch/\(Prefetch.version)", manifests: [],
            codecWorkers: Processors.available)
        configuration.requests.proxies = ProxySettings(environment: RequestOptions.environment)
        let checkUp = CacheCheckUp(
            path: path, configuration: configuration, availableDescriptors: OpenFiles.left,
            wallClock: WallClock.now)
        var lines = LineWriter(OutputFile(borrowing: STDOUT_FILENO, name: "standard output"))
        var all: [Diagnosis] = []
        let marks = Marks()
        try writing {
            try checkUp.run(isOnline: online) { diagnosis in
                all.append(diagnosis)
                if json {
                    try lines.write(JSONObject(diagnosis))
                } else {
                    for line in marks.lines(diagnosis) { try lines.write(line: line) }
                }
                try lines.flush()
            }
            if json { try lines.write(JSONObject(all, path: path)) }
            try lines.finish()
        }
        if all.exitStatus != 0 { throw CommandFailure(exitStatus: all.exitStatus, message: "") }
    }

    /// What stands before each line.
    private struct Marks {
        /// Whether the terminal, or whoever reads this, knows more than ASCII.
        private let isUnicode: Bool

        init() {
            // As `setlocale` goes about it.
            let name = ["LC_ALL", "LC_CTYPE", "LANG"].lazy.compactMap { name -> String? in
                guard let value = getenv(name), value.pointee != 0 else { return nil }
                return String(cString: value)
            }.first
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
