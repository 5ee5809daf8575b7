internal import CSandbox
package import Codecs
import PrefetchModel
internal import Threading

/// Processes images by the rules of a run, within its memory budget, in workers behind walls. Any
/// thread may use it.
package final class BudgetedImageProcessor: Sendable {
    private let rules: DecodingRules
    private let mode: SandboxMode
    private let pixels: MemoryBudget
    /// Nil where images are decoded in this process.
    private let pool: WorkerPool?
    private let failure = Monitor<String?>(nil)

    package init(_ rules: DecodingRules, sandbox: SandboxMode) {
        self.rules = rules
        mode = sandbox
        pixels = MemoryBudget(total: rules.header.memory)
        pool =
            sandbox == .off || !csandbox_is_available() ? nil : WorkerPool(rules, mode: sandbox)
        BudgetedImageProcessor.chooseDecoders(for: sandbox)
    }

    /// Notes where this process decodes formats that are too risky without walls. Where workers
    /// turn out not to start, such images stay undecoded.
    package static func chooseDecoders(for mode: SandboxMode) {
        if mode == .off {
            SandboxedDecoders.allow(.sandboxed)
        } else if csandbox_is_available() {
            SandboxedDecoders.leaveToWorkers(.sandboxed)
        }
    }

    /// Decodes or checks the source and performs the task: all results from one decode, or one by
    /// one where that takes too much memory. Waits for its share of the memory.
    ///
    /// `descriptor` is a sealed memfd that begins with the same bytes, which saves a copy; nil for
    /// none.
    ///
    /// - Throws: A `CodecError` about the image; a `UserError` where walls are required and do not
    ///   hold.
    package func perform(
        _ task: DecodingTask, on bytes: UnsafeRawBufferPointer, at descriptor: Int32? = nil,
        cancellation: Cancellation = Cancellation()
    ) throws -> ProcessedEntry {
        let processed = try withPool { pool in
            try pool.perform(
                task, on: WorkerImage(bytes: bytes, descriptor: descriptor), budget: pixels,
                cancellation: cancellation)
        }
        if let processed { return processed }
        var reserved = 0
        defer { pixels.giveBack(reserved) }
        return try rules.perform(task, on: bytes, cancellation: cancellation) { need in
            pixels.giveBack(reserved)
            reserved = pixels.take(need) ? need : 0
            return reserved == need
        }
    }

    /// Starts a worker, so that the first image finds it ready.
    ///
    /// - Throws: a `UserError` where walls are required and do not hold.
    package func prepare() throws {
        let recipes = rules.header.recipes
        _ = try withPool { try $0.prepare(needing: CodecLibrarySet(for: recipes)) }
    }

    /// Checks walls that are required, before any image is.
    ///
    /// - Throws: a `UserError` if one of them does not hold.
    package func checkWalls() throws {
        if mode == .require { try prepare() }
    }

    /// Nil where no worker can be started, and none is required.
    private func withPool<Value>(_ body: (WorkerPool) throws -> Value) throws -> Value? {
        guard let pool else {
            guard mode == .require else { return nil }
            throw UserError("--sandbox require", "this build decodes images in its own process")
        }
        if failure.withLock({ $0 == nil }) {
            do {
                return try body(pool)
            } catch let error as UserError {
                failure.withLock { $0 = $0 ?? error.description }
                SandboxedDecoders.leaveToWorkers([])
            }
        }
        guard mode == .require, let reason = failure.withLock({ $0 }) else { return nil }
        throw UserError(
            "--sandbox require", reason,
            hint:
                "`prefetch doctor` names the walls of this machine; --sandbox auto goes on without "
                + "the missing ones")
    }

    /// The walls around the decoders.
    package var sandbox: SandboxState {
        if mode == .off { return .off }
        if let reason = failure.withLock({ $0 }) { return .none(reason) }
        return pool?.missing.map(SandboxState.workers) ?? .unused
    }

    /// Starts a worker with all libraries, and returns its walls.
    package static func trySandbox() -> SandboxState {
        let rules = HeaderRules(memory: .mebibytes(64))
        let processor = BudgetedImageProcessor(DecodingRules(header: rules), sandbox: .auto)
        _ = try? processor.withPool { try $0.prepare(needing: .all) }
        return processor.sandbox
    }

    /// Ends the workers. Nothing is processed afterwards.
    package func finish() { pool?.finish() }

    deinit { pool?.finish() }
}
