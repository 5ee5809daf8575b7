import Glibc

/// The processor time of the calling thread, by which the codecs' work is measured: what other
/// threads do on the same cores meanwhile is not theirs.
enum ThreadClock {
    static var now: Duration {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }
}
