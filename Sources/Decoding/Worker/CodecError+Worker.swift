import Codecs
import Glibc

extension CodecError {
    /// The error for an image in a worker that could not read or write its socket.
    static let unfinished = CodecError.crashed("its decoder ended with status 0", signal: 0)

    /// The error for an image in a worker that has sent nothing of a right form.
    static let nonsense = CodecError.crashed("its decoder sent nonsense", signal: 0)

    /// The error for an image in a worker that has ended with this status of waitpid(2).
    init(waitStatus: Int32) {
        let signal = waitStatus & 0x7F
        let text =
            switch signal {
            case 0: "its decoder ended with status \(waitStatus >> 8 & 0xFF)"
            case SIGSYS: "its decoder made a forbidden system call (SIGSYS)"
            default: "its decoder crashed (\(CodecError.name(of: signal)))"
            }
        self = .crashed(text, signal: signal)
    }

    private static func name(of signal: Int32) -> String {
        let names: [Int32: String] = [
            SIGSEGV: "SIGSEGV", SIGBUS: "SIGBUS", SIGFPE: "SIGFPE", SIGILL: "SIGILL",
            SIGTRAP: "SIGTRAP", SIGABRT: "SIGABRT", SIGKILL: "SIGKILL",
        ]
        return names[signal] ?? "signal \(signal)"
    }
}
