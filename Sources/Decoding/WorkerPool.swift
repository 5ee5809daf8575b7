import Codecs
import Glibc
import PrefetchModel
import Threading

/// The workers of a command: at most one for each thread that decodes, started on first use,
/// and again after their end.
final class WorkerPool: Sendable {
    private struct PoolState {
        var idle: [WorkerProcess] = []
        /// Libraries of workers that passed their test; nil before the first one.
        var tested: CodecLibrarySet?
        /// The libraries of images so far: more of the same format usually follow.
        var libraries: CodecLibrarySet = []
        /// Libraries with which no worker starts.
        var refused: CodecLibrarySet = []
        /// Workers that ended before their first image, since one last sent a result.
        var idleEnds = 0
        /// The sets of recipes, by their number.
        var sets: [[Recipe]: Int] = [:]
        var lastSet = 0
        /// The walls that do not hold; nil before the first worker.
        var missing: [Wall: Int32]?
    }

    private let rules: DecodingRules
    private let mode: SandboxMode
    private let state = Monitor(PoolState())
    /// The thread that starts workers: Linux ends them with the thread that started them.
    private let starter = Starter()

    /// More bytes than any results; the pages exist once they are written.
    private static let mostResults = 64 << 30
    /// Ends before a first image after which this pool gives up.
    private static let mostIdleEnds = 3
    /// Attempts at an image in workers that are killed.
    private static let mostAttempts = 3

    init(_ rules: DecodingRules, mode: SandboxMode) {
        self.rules = rules
        self.mode = mode
    }

    /// The walls that do not hold, with their `errno`; nil before the first worker.
    var missing: [Wall: Int32]? { state.withLock { $0.missing } }

    /// Performs a task in a worker. If it is killed from outside, or its socket fails, that says
    /// nothing about the image: twice, another worker takes over.
    ///
    /// - Throws: A `CodecError` about the image; a `UserError` if no worker can be started.
    func perform(
        _ task: DecodingTask, on image: WorkerImage, budget: MemoryBudget,
        cancellation: Cancellation
    ) throws -> ProcessedEntry {
        var attempts = 1
        while true {
            let result = try attempt(task, on: image, budget, cancellation)
            let isLast = attempts == WorkerPool.mostAttempts
            switch result {
            case .failure(.unfinished) where isLast:
                throw CodecError.outOfMemory("no decoder for it")
            case .failure(.crashed(_, signal: SIGKILL)) where !isLast,
                .failure(.unfinished) where !isLast:
                attempts += 1
            default: return try result.get()
            }
        }
    }

    private func attempt(
        _ task: DecodingTask, on image: WorkerImage, _ budget: MemoryBudget,
        _ cancellation: Cancellation
    ) throws(UserError) -> Result<ProcessedEntry, CodecError> {
        let recipes = task.recipes
        let worker = try worker(needing: CodecLibrarySet(for: image.format, recipes))
        // A worker that has ended is not given back.
        defer { giveBack(worker) }
        let set = recipes.isEmpty ? 0 : number(of: recipes)
        let ahead = min(8 << 20, budget.total.bytes / 16)
        let reserved = budget.takeAtOnce(ahead) ? ahead : 0
        let limit = min(rules.header.limits.maximumTime, WireReader.mostTime)
        let time = limit * (2 * max(1, recipes.count)) + .seconds(1)
        return Result { () throws(CodecError) in
            try worker.perform(
                task, on: image, set: set, budget: budget, reserved: reserved, time: time,
                cancellation: cancellation)
        }
    }

    /// Starts a worker ahead of its first image.
    func prepare(needing libraries: CodecLibrarySet) throws(UserError) {
        giveBack(try worker(needing: libraries))
    }

    private func giveBack(_ worker: WorkerProcess) {
        guard !worker.hasEnded else { return }
        state.withLock {
            $0.idle.append(worker)
            $0.idleEnds = 0
        }
    }

    private func number(of recipes: [Recipe]) -> Int {
        state.withLock { state in
            if let number = state.sets[recipes] { return number }
            if state.sets.count == WorkerProcess.mostSets { state.sets = [:] }
            state.lastSet += 1
            state.sets[recipes] = state.lastSet
            return state.lastSet
        }
    }

    private func worker(needing libraries: CodecLibrarySet) throws(UserError) -> WorkerProcess {
        while true {
            let needed = libraries.subtracting(state.withLock { $0.refused })
            while let worker = state.withLock({ $0.idle.popLast() }) {
                if worker.isOver() {
                    worker.end()
                    // One that took an image may have been made to end.
                    if !worker.hasTakenImage { try noteIdleEnd("workers end by themselves") }
                } else if worker.libraries.isSuperset(of: needed) {
                    return worker
                }
            }
            let launch = launch(needing: needed)
            let started = Result { () throws(UserError) in try start(launch) }
            guard case .success(let worker) = started else {
                if !refuseLibraries(of: launch), case .failure(let error) = started {
                    try noteIdleEnd(error.description)
                }
                continue
            }
            if mode == .require, !worker.missing.isEmpty {
                throw UserError("there is no \(SandboxState.text(of: worker.missing)) here")
            }
            state.withLock { state in
                state.missing = worker.missing
                state.tested = (state.tested ?? []).union(worker.libraries)
            }
            return worker
        }
    }

    private func launch(needing needed: CodecLibrarySet) -> WorkerLaunch {
        state.withLock { state in
            state.libraries.formUnion(needed)
            state.libraries.subtract(state.refused)
            let isTested = state.tested?.isSuperset(of: state.libraries) == true
            return WorkerLaunch(tests: !isTested, libraries: state.libraries)
        }
    }

    private func start(_ launch: WorkerLaunch) throws(UserError) -> WorkerProcess {
        // The output has all results of an image, and each may be as large as all pixels.
        let results = 8 * min(rules.header.memory.bytes, WorkerPool.mostResults / 8) + (1 << 20)
        let rules = rules
        let worker = try starter.run { () throws(UserError) in
            try WorkerProcess(rules, results: results, launch)
        }
        if let reason = worker.startFailure() { throw UserError(reason) }
        return worker
    }

    /// Looks for libraries that keep a worker from starting, each alone. Their formats stay
    /// undecoded from then on. Returns whether there is one.
    private func refuseLibraries(of launch: WorkerLaunch) -> Bool {
        var refused: CodecLibrarySet = []
        for bit in 0..<8 {
            let library = CodecLibrarySet(rawValue: 1 << bit)
                .intersection(launch.libraries).intersection(.sandboxed)
            guard !library.isEmpty else { continue }
            let alone = WorkerLaunch(tests: true, libraries: library)
            if (try? start(alone)) == nil { refused.formUnion(library) }
        }
        state.withLock { $0.refused.formUnion(refused) }
        return !refused.isEmpty
    }

    /// - Throws: the reason, when no other worker is tried.
    private func noteIdleEnd(_ reason: String) throws(UserError) {
        let ends = state.withLock { state in
            state.idleEnds += 1
            return state.idleEnds
        }
        guard ends < WorkerPool.mostIdleEnds else { throw UserError(reason) }
    }

    func finish() {
        let idle = state.withLock { state in
            defer { state.idle = [] }
            return state.idle
        }
        for worker in idle { worker.end() }
        starter.finish()
    }
}

/// A thread that runs one piece of work after the other, for others that wait for it.
private final class Starter: Sendable {
    private struct WorkQueue {
        var work: [@Sendable () -> Void] = []
        var isFinished = false
        var thread: OwnedThread?
    }

    private let queue = Monitor(WorkQueue())

    func run<Value: Sendable>(
        _ body: @escaping @Sendable () throws(UserError) -> Value
    ) throws(UserError) -> Value {
        let outcome = Monitor<Result<Value, UserError>?>(nil)
        try queue.withLock { queue throws(UserError) in
            if queue.thread == nil {
                queue.thread = try OwnedThread(name: "workers") { [self] in serve() }
            }
        }
        queue.update { queue in
            queue.work.append {
                let result = Result { () throws(UserError) in try body() }
                outcome.update { $0 = result }
            }
        }
        let result = outcome.wait {
            outcome, _ -> Monitor<Result<Value, UserError>?>.Decision<Result<Value, UserError>> in
            if let outcome { .ready(outcome) } else { .wait(until: nil) }
        }
        return try result.get()
    }

    private func serve() {
        while let work = next() { work() }
    }

    private func next() -> (@Sendable () -> Void)? {
        queue.wait { queue, _ -> Monitor<WorkQueue>.Decision<(@Sendable () -> Void)?> in
            if !queue.work.isEmpty { return .ready(queue.work.removeFirst()) }
            return queue.isFinished ? .ready(nil) : .wait(until: nil)
        }
    }

    func finish() {
        let thread = queue.update { queue in
            queue.isFinished = true
            defer { queue.thread = nil }
            return queue.thread
        }
        thread?.join()
    }
}
