internal import CInterruption

/// Stops codecs on other threads in the middle of an image.
///
/// `@unchecked Sendable` holds because C sets and reads the flag atomically, and only `deinit`
/// frees it.
package final class Cancellation: @unchecked Sendable {
    fileprivate let flag = UnsafeMutablePointer<cinterruption_flag>.allocate(capacity: 1)

    package init() {
        flag.initialize(to: cinterruption_flag())
    }

    deinit { flag.deallocate() }

    /// Whether ``cancel()`` was called.
    package var isCancelled: Bool { cinterruption_is_set(flag) }

    /// Cancels current and future work, permanently. Any thread may call it.
    package func cancel() {
        cinterruption_set(flag)
    }
}

/// Ends the work on one image early: on cancellation, or after ``CodecLimits/maximumTime``. Used by
/// one thread only.
final class Interruption {
    /// The state that the C targets check.
    let pointer = UnsafeMutablePointer<cinterruption>.allocate(capacity: 1)
    /// Keeps the flag alive.
    private let cancellation: Cancellation?
    private let limits: CodecLimits

    /// Starts the time limit.
    init(_ limits: CodecLimits, _ cancellation: Cancellation?) {
        self.cancellation = cancellation
        self.limits = limits
        pointer.initialize(
            to: cinterruption(
                flag: cancellation.map { UnsafePointer($0.flag) }, deadline_nanoseconds: 0,
                earliest_nanoseconds: 0, unseen_bytes: 0, cause: CINTERRUPTION_NONE))
        cinterruption_begin(pointer, limits.maximumTime.wholeNanoseconds)
    }

    deinit { pointer.deallocate() }

    /// Returns an interruption with the same cancellation, and with the time limit of this many
    /// results starting now.
    func another(for results: Int) -> Interruption {
        var limits = limits
        limits.maximumTime *= results
        return Interruption(limits, cancellation)
    }

    /// The error for a C call that was interrupted.
    var error: CodecError {
        pointer.pointee.cause == CINTERRUPTION_CANCELLED
            ? .cancelled : .limitExceeded("more processor time than --max-decode-time allows")
    }

    /// Throws if the work was interrupted. Call it before using a result that C returned without a
    /// status. Does not look at the clock or the flag until 64 KiB have been processed since the
    /// last look.
    ///
    /// - Throws: `cancelled`, or `limitExceeded` for the time.
    func check() throws(CodecError) {
        if cinterruption_after(pointer, 0) { throw error }
    }

    /// Counts processed bytes, and throws if the work was interrupted.
    func check(after bytes: Int) throws(CodecError) {
        if cinterruption_after(pointer, UInt64(bytes)) { throw error }
    }

    /// Looks at flag and clock immediately, for Swift steps that are long or frequent.
    func look() throws(CodecError) {
        if cinterruption_look(pointer) { throw error }
    }
}
