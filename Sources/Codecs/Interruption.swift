internal import CInterruption

/// Tells codecs on other threads to give up the images that they work on.
///
/// `@unchecked Sendable` holds because C sets and reads the flag atomically, and only `deinit` frees
/// it.
package final class Cancellation: @unchecked Sendable {
    fileprivate let flag = UnsafeMutablePointer<cinterruption_flag>.allocate(capacity: 1)

    package init() {
        flag.initialize(to: cinterruption_flag())
    }

    deinit { flag.deallocate() }

    /// For good: what begins later ends at once. Any thread may call it.
    package func cancel() {
        cinterruption_set(flag)
    }
}

/// What ends the work on one image early, for the one thread that does it: a cancellation, or
/// ``CodecLimits/maximumTime``.
final class Interruption {
    /// What the C targets look at.
    let pointer = UnsafeMutablePointer<cinterruption>.allocate(capacity: 1)
    /// Keeps its flag.
    private let cancellation: Cancellation?
    private let limits: CodecLimits

    /// The time begins here.
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

    /// By the same cancellation, with the time of so many results from now on.
    func another(for results: Int = 1) -> Interruption {
        var limits = limits
        limits.maximumTime *= results
        return Interruption(limits, cancellation)
    }

    /// What an interrupted call of C ends with.
    var error: CodecError {
        pointer.pointee.cause == CINTERRUPTION_CANCELLED
            ? .cancelled : .limitExceeded("more processor time than --max-decode-time allows")
    }

    /// Ends the work if it was interrupted: to be called before going by what C has found or made
    /// without a status. Looks again only when so much has been done since the last look.
    ///
    /// - Throws: `cancelled`, or `limitExceeded` for the time.
    func check() throws(CodecError) {
        if cinterruption_after(pointer, 0) { throw error }
    }

    /// Ends the work if it was interrupted, now that so many more bytes have been worked on.
    ///
    /// - Throws: as ``check()`` does.
    func check(after bytes: Int) throws(CodecError) {
        if cinterruption_after(pointer, UInt64(bytes)) { throw error }
    }

    /// Looks whether it was interrupted, for steps of Swift that may take long or come often.
    ///
    /// - Throws: as ``check()`` does.
    func look() throws(CodecError) {
        if cinterruption_look(pointer) { throw error }
    }
}
