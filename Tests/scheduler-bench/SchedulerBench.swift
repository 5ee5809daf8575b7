import EntryQueue
import Glibc
import PrefetchModel
import Scheduling

/// Pushes entries to the scheduler and pops them all, on one thread. `Scripts/bench/run --only
/// scheduler` measures it. Not installed with the command.
///
/// Usage: `scheduler-bench ENTRIES HOSTS CAPACITY`. Entries alternate between all hosts, in FIFO
/// order. As in a run, those beyond `CAPACITY` are written to a temporary file in `$TMPDIR`, else
/// `/tmp`. The default number of jobs runs at a time, every request succeeds, and the clock is read
/// for every entry.
///
/// Exits with status 1 and a message if an entry is lost or out of order.
@main
struct SchedulerBench {
    /// The number of concurrent transfers, in total and per host.
    private static let (jobs, concurrency) = (32, 6)

    static func main() throws {
        let numbers = CommandLine.arguments.dropFirst().compactMap { Int($0) }
        guard numbers.count == 3, numbers.allSatisfy({ $0 > 0 }) else {
            fail("usage: scheduler-bench ENTRIES HOSTS CAPACITY")
        }
        let (entries, hosts) = (numbers[0], numbers[1])
        let names = (0..<hosts).map { "https://host-\($0).example:8443" }
        let storage = FileStorage(capacity: numbers[2])
        var scheduler = Scheduler(
            order: .fifo, rules: HostPacing.PaceRules(concurrency: concurrency), storage: storage)
        for entry in 0..<entries {
            try scheduler.push(entry, priority: .normal, host: names[entry % hosts], at: .now)
        }
        var running: [Scheduler.HostTurn] = []
        running.reserveCapacity(jobs)
        for expected in 0..<entries {
            guard let start = try scheduler.popReady(at: .now), start.entry == expected else {
                fail("entry \(expected) does not come in its turn")
            }
            let slot = expected % jobs
            if running.count == jobs {
                scheduler.finished(running[slot], of: "", .answered, at: .now)
                running[slot] = start.host
            } else {
                running.append(start.host)
            }
        }
        guard scheduler.isEmpty else { fail("\(scheduler.count) entries are left") }
    }

    private static func fail(_ message: String) -> Never {
        // If the message cannot be written, the status still reports the failure.
        _ = "scheduler-bench: \(message)\n".withBytes {
            write(STDERR_FILENO, $0.baseAddress, $0.count)
        }
        exit(1)
    }
}

/// Stores records of realistic size without meaningful content.
private final class FileStorage: QueueSpilling {
    private let capacity: Int
    private let file = SpillFile(
        folder: getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp")
    /// The size of a record beside its link: about an entry's numbers and its URL.
    private static let payload = [UInt8](repeating: 0x2F, count: 144)
    private static let headBytes = 24

    init(capacity: Int) {
        self.capacity = capacity
    }

    func hasRoom(beside waiting: Int, isReturning: Bool) -> Bool { waiting < capacity }

    func spill(
        _ entry: Int, position: Int, next: SpillLink, behind last: SpillPlace?
    ) throws -> SpillLink {
        let record = bytes(of: next) + bytes(of: entry) + FileStorage.payload
        let place = SpillPlace(offset: try file.append(record))
        let link = SpillLink(place: place, position: position)
        if let last { try file.change(bytes(of: link), at: last.offset) }
        return link
    }

    func load(_ place: SpillPlace) throws -> (entry: Int, next: SpillLink) {
        let count = FileStorage.headBytes + FileStorage.payload.count
        let record = try file.read(count, at: place.offset)
        file.forget(count, at: place.offset)
        let numbers = record.withUnsafeBytes { bytes in
            (0..<3).map { bytes.loadUnaligned(fromByteOffset: 8 * $0, as: Int.self) }
        }
        let next = SpillLink(
            place: numbers[0] < 0 ? nil : SpillPlace(offset: numbers[0]), position: numbers[1])
        return (numbers[2], next)
    }

    private func bytes(of link: SpillLink) -> [UInt8] {
        bytes(of: link.place?.offset ?? -1) + bytes(of: link.position)
    }

    private func bytes(of number: Int) -> [UInt8] { withUnsafeBytes(of: number) { Array($0) } }
}
