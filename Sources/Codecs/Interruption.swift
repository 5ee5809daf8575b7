internal import CInterruption
internal import Glibc

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

    func check(after bytes: Int) throws(CodecError) {
        if cinterruption_after(pointer, UInt64(bytes)) { throw error }
    }

    /// Calls a C function that writes a message, and throws the error of its status.
    func run(_ body: (UnsafeMutablePointer<CChar>) -> ccodec_status) throws(CodecError) {
        let (status, text) = withMessage(CCODEC_MESSAGE_BYTES, body)
        switch status {
        case CCODEC_OK: return
        case CCODEC_TRUNCATED: throw .cut(text)
        case CCODEC_UNSUPPORTED: throw .unsupported(text)
        case CCODEC_LIMIT: throw .limitExceeded(text)
        case CCODEC_OUT_OF_MEMORY: throw .outOfMemory(text)
        case CCODEC_FAILED: throw .encodingFailed(text)
        case CCODEC_INTERRUPTED: throw error
        default: throw .broken(text)
        }
    }

    /// Throws if a C call failed that can only be interrupted or lack memory. A size that cannot be
    /// addressed lacks memory, too.
    func check(_ status: ccodec_status, noMemory text: String) throws(CodecError) {
        if status == CCODEC_INTERRUPTED { throw error }
        guard status == CCODEC_OK else { throw .outOfMemory(text) }
    }

    /// Looks at flag and clock immediately, for Swift steps that are long or frequent.
    func look() throws(CodecError) {
        if cinterruption_look(pointer) { throw error }
    }
}

/// The processor time of the calling thread. It measures the codecs' work without the work of other
/// threads on the same cores.
enum ThreadClock {
    static var now: Duration {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }
}

extension Duration {
    /// The duration as the C boundary takes it: at least 1, since 0 means no limit there.
    var wholeNanoseconds: UInt64 {
        let (seconds, attoseconds) = max(self, .zero).components
        let whole = UInt64(clamping: seconds).multipliedReportingOverflow(by: 1_000_000_000)
        guard !whole.overflow else { return .max }
        let (sum, overflow) = whole.partialValue.addingReportingOverflow(
            UInt64(clamping: attoseconds / 1_000_000_000))
        return overflow ? .max : max(sum, 1)
    }
}
