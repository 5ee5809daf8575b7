import Glibc

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
