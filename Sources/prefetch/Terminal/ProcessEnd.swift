internal import CCrash
import Glibc

/// The only ways to exit. Other threads may still run; the one that waits for signals never ends.
enum ProcessEnd {
    static func leave(_ status: Int32) -> Never {
        ccrash_end(status)
    }

    /// Ends the process by the signal, for its parent to see the cause.
    static func die(of signal: Int32) -> Never {
        ccrash_save_coverage()
        Glibc.signal(signal, SIG_DFL)
        var set = sigset_t()
        sigemptyset(&set)
        sigaddset(&set, signal)
        pthread_sigmask(SIG_UNBLOCK, &set, nil)
        // To this thread, since another one may wait for the signal.
        raise(signal)
        // The first process of a container doesn't die by a signal; shells use this status.
        ccrash_end(128 + signal)
    }
}
