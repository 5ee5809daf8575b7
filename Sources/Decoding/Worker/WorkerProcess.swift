internal import CLinux
internal import CSandbox
import Codecs
import Glibc
import PrefetchModel
// For `timespec`, see Monitor.
import SwiftOverlayShims
import Threading

/// A process that decodes images for this one, behind walls. This process trusts nothing that it
/// sends.
///
/// `@unchecked Sendable`: a pool gives it to one thread at a time.
final class WorkerProcess: @unchecked Sendable {
    /// The most sets of recipes that it keeps.
    static let mostSets = 256

    /// The libraries that it was told to load.
    let libraries: CodecLibrarySet
    private let process: pid_t
    private let socket: Int32
    private let input: SharedMemory
    private let output: SharedMemory
    private(set) var hasEnded = false
    private(set) var hasTakenImage = false
    /// The numbers of the sets of recipes that it knows.
    private var knownSets: Set<Int> = []

    /// The walls that do not hold, with their `errno`.
    private(set) var missing: [Wall: Int32] = [:]

    /// Twice the smallest data with a memory of their own.
    private static let inputBytes = 2 << 20
    /// The memory for results that stays between two images.
    private static let keptBytes = 4 << 20
    private static let slice: Int32 = 100
    private static let mostAnswerBytes = 1 << 20

    /// Starts a worker for images with `results` bytes of results at most. ``startFailure()``
    /// follows.
    init(
        _ rules: DecodingRules, results: Int, _ launch: WorkerLaunch
    ) throws(UserError) {
        libraries = launch.libraries
        input = try WorkerProcess.memory("prefetch-input", capacity: WorkerProcess.inputBytes)
        output = try WorkerProcess.memory("prefetch-output", capacity: results)
        var ends: (Int32, Int32) = (-1, -1)
        let code = withUnsafeMutablePointer(to: &ends) {
            $0.withMemoryRebound(to: Int32.self, capacity: 2) {
                socketpair(AF_UNIX, Int32(SOCK_SEQPACKET.rawValue | SOCK_CLOEXEC.rawValue), 0, $0)
            }
        }
        guard code == 0 else { throw WorkerProcess.failure(errno) }
        defer { close(ends.1) }
        do {
            process = try launch.start(
                input: input.descriptor ?? -1, output: output.descriptor ?? -1, socket: ends.1)
        } catch {
            close(ends.0)
            throw error
        }
        socket = ends.0
        var writer = WireWriter()
        writer.put(rules)
        let isSent = writer.bytes.withUnsafeBytes {
            try? send($0, at: 0, as: .rules)
        }
        guard isSent != nil else { throw WorkerProcess.failure(errno) }
        // Mapped on both sides now.
        input.closeDescriptor()
        output.closeDescriptor()
    }

    deinit { end() }

    static func failure(_ code: Int32) -> UserError {
        UserError("the sandbox", "a worker cannot be started: \(String(cString: strerror(code)))")
    }

    private static func memory(_ name: String, capacity: Int) throws(UserError) -> SharedMemory {
        guard let memory = SharedMemory(name, capacity: capacity), memory.seal(isFinal: false)
        else {
            throw failure(errno)
        }
        return memory
    }

    // MARK: Work

    /// Waits until it takes images, and returns why it does not; nil if it does.
    func startFailure() -> String? {
        do {
            let message = try receive(within: .seconds(10), cancellation: nil)
            guard message.kind == .ready else { return "\(CodecError.nonsense)" }
            for wall in Wall.allCases where message.first & (1 << wall.rawValue) == 0 {
                missing[wall] = Int32(message.second >> (8 * wall.rawValue) & 0xFF)
            }
            return nil
        } catch {
            return "\(error)"
        }
    }

    /// Sends recipes before their first use. Returns the place in the input for an image.
    private func learn(_ recipes: [Recipe], _ number: Int) throws(CodecError) -> Int {
        if knownSets.contains(number) { return 0 }
        // The worker does the same.
        if knownSets.count == WorkerProcess.mostSets { knownSets = [] }
        knownSets.insert(number)
        var writer = WireWriter()
        writer.put(recipes)
        let end = try writer.bytes.span.withUnsafeBytes { bytes throws(CodecError) in
            try send(bytes, at: 0, as: .recipes, third: number)
        }
        // The image begins at a page.
        return ((end ?? 0) + 4095) & ~4095
    }

    /// Performs a task on an image. The memory for its pixels, `reserved` bytes of it
    /// beforehand, is taken from `budget` until the end. `set` is the number of the task's recipes.
    func perform(
        _ task: DecodingTask, on image: WorkerImage, set: Int, budget: MemoryBudget,
        reserved: Int, time: Duration, cancellation: Cancellation
    ) throws(CodecError) -> ProcessedEntry {
        var reserved = reserved
        defer { budget.giveBack(reserved) }
        hasTakenImage = true
        let kind: WorkerMessage.MessageKind =
            switch task {
            case .new: .process
            case .stored: .processStored
            case .placeholder: .placeholder
            }
        let offset = task.recipes.isEmpty ? 0 : try learn(task.recipes, set)
        let sent = try send(
            image.bytes, image.descriptor, at: offset, as: kind, third: set, fourth: reserved)
        guard sent != nil else { throw ended() }
        // For all recipes together, and then for each.
        var needs = (0...task.recipes.count)[...]
        while true {
            let message = try receive(within: time, cancellation: cancellation)
            switch message.kind {
            case .needs where needs.popFirst() != nil:
                budget.giveBack(reserved)
                reserved = 0
                if message.first >= 0, budget.take(message.first) { reserved = message.first }
                let isReserved = reserved == message.first
                guard WorkerMessage(kind: .reserved, first: isReserved ? 1 : 0).send(on: socket)
                else { throw ended() }
            case .done, .refused:
                return try result(message, task, of: image)
            default:
                end()
                throw .nonsense
            }
        }
    }

    private func result(
        _ message: WorkerMessage, _ task: DecodingTask, of source: WorkerImage
    ) throws(CodecError) -> ProcessedEntry {
        var isSound = false
        defer {
            if !isSound { end() }
            // It may have written more than it says.
            output.discard(
                WorkerProcess.keptBytes..<max(WorkerProcess.keptBytes, output.bytes.count))
        }
        guard (0...WorkerProcess.mostAnswerBytes).contains(message.first),
            message.first <= output.bytes.count
        else { throw .nonsense }
        // A worker could change the message while it is read.
        var reader = WireReader(Array(output.bytes[..<message.first]))
        if message.kind == .refused {
            let error = try reader.codecError()
            isSound = true
            throw error
        }
        var end = message.first
        let entry = try reader.entry(for: task, of: source) {
            offset, count throws(CodecError) in
            // Each part follows the last one, so that a worker cannot name one several times.
            guard offset >= end else { throw .nonsense }
            let copy = try copy(offset, count)
            end = offset + count
            return copy
        }
        isSound = true
        return entry
    }

    private func copy(_ offset: Int, _ count: Int) throws(CodecError) -> ImageBytes {
        guard (0...output.bytes.count).contains(offset),
            (0...(output.bytes.count - offset)).contains(count)
        else { throw .nonsense }
        let part = UnsafeRawBufferPointer(rebasing: output.bytes[offset..<(offset + count)])
        guard let copy = ImageBytes(copying: part) else {
            throw .outOfMemory("no memory for its results")
        }
        return copy
    }

    /// Sends data with a message: large ones in memory of their own, others in the input. Returns
    /// the end there; nil if the worker has ended.
    ///
    /// - Throws: `outOfMemory`
    private func send(
        _ data: UnsafeRawBufferPointer, _ descriptor: Int32? = nil, at offset: Int,
        as kind: WorkerMessage.MessageKind, third: Int = 0, fourth: Int = 0
    ) throws(CodecError) -> Int? {
        let count = data.count
        var message = WorkerMessage(
            kind: kind, first: offset, second: count, third: third, fourth: fourth)
        if let descriptor {
            return message.send(on: socket, with: descriptor) ? offset : nil
        }
        if count > input.bytes.count / 2 {
            guard let memory = SharedMemory("prefetch-image", capacity: count),
                let descriptor = memory.descriptor
            else { throw .outOfMemory("no memory for its decoder") }
            memory.bytes.copyMemory(from: data)
            // The worker changes only its own copy, where the kernel cannot forbid that.
            _ = memory.seal(isFinal: true) || memory.seal(isFinal: false)
            return message.send(on: socket, with: descriptor) ? offset : nil
        }
        message.first = offset + count <= input.bytes.count ? offset : 0
        UnsafeMutableRawBufferPointer(rebasing: input.bytes[message.first...])
            .copyMemory(from: data)
        return message.send(on: socket) ? message.first + count : nil
    }

    /// Waits for a message. A worker that has computed less than half the time, as on a busy
    /// machine, gets ten times the time.
    private func receive(
        within time: Duration, cancellation: Cancellation?
    ) throws(CodecError) -> WorkerMessage {
        // Counted in slices, so that a suspended program does not lose its images.
        var waited = Duration.zero
        let computedBefore = computed
        while true {
            var request = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
            let count = poll(&request, 1, WorkerProcess.slice)
            if count > 0 {
                let received = Result { () throws(CodecError) in
                    try WorkerMessage.receive(on: socket)
                }
                if case .success(let message?) = received { return message }
                if case .success = received { throw ended() }
                end()
                throw .nonsense
            }
            waited += .milliseconds(Int(WorkerProcess.slice))
            if cancellation?.isCancelled == true {
                end()
                throw .cancelled
            }
            let hasComputed = (computed ?? .zero) - (computedBefore ?? .zero) >= time / 2
            if waited >= (hasComputed ? time : time * 10) {
                end()
                throw .limitExceeded(
                    "its decoder took more than \(time.components.seconds) s")
            }
        }
    }

    /// The processor time of the worker.
    private var computed: Duration? {
        var clock = clockid_t()
        var time = timespec()
        guard clock_getcpuclockid(process, &clock) == 0, clock_gettime(clock, &time) == 0 else {
            return nil
        }
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }

    // MARK: The end

    /// Whether it has ended without having been told to.
    func isOver() -> Bool {
        var request = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
        return hasEnded || poll(&request, 1, 0) != 0
    }

    /// Ends it, if it has not ended by itself. Returns its end as the error of its image.
    private func ended() -> CodecError {
        // The status of a process that ends already stays.
        kill(process, SIGKILL)
        var status: Int32 = 0
        while waitpid(process, &status, 0) < 0, errno == EINTR {}
        hasEnded = true
        close(socket)
        return CodecError(waitStatus: status)
    }

    /// Ends it at once.
    func end() {
        guard !hasEnded else { return }
        _ = ended()
    }
}
