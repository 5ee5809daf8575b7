internal import CCrash
import Glibc

/// The only ways out of the program. Threads may still run, on their way to an end or blocked for
/// ever, as the one that waits for signals is.
enum ProcessEnd {
    /// Ends the process with a status.
    static func leave(_ status: Int32) -> Never {
        ccrash_end(status)
    }

    /// Ends the process by the signal, so that whoever started it sees why.
    static func die(of signal: Int32) -> Never {
        ccrash_save_coverage()
        Glibc.signal(signal, SIG_DFL)
        var set = sigset_t()
        sigemptyset(&set)
        sigaddset(&set, signal)
        pthread_sigmask(SIG_UNBLOCK, &set, nil)
        // To this very thread: another one may wait for the signal.
        raise(signal)
        // The kernel lets the first process of a container not die so; shells say it like this.
        ccrash_end(128 + signal)
    }
}
