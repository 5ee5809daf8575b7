internal import CCurl
import PrefetchModel
import Threading

/// Requests and commands that other threads send to the loop.
struct Inbox: Sendable {
    struct Messages {
        var requests: [TransferRequest] = []
        /// The completions of the local origin.
        var ended: [TransferCompletion] = []
        /// Whether the budget has room for paused transfers.
        var resumes = false
        var cancels = false
        var stops = false
    }

    private let contents = Monitor(Messages())
    private let wakeUpFails = Monitor(false)
    let multi: MultiHandle

    /// Whether the last wake-up failed: libcurl has no descriptors for it, or cannot write to them.
    var isDeaf: Bool { wakeUpFails.withLock { $0 } }

    func put(_ change: (inout Messages) -> Void) {
        contents.withLock { change(&$0) }
        let hasFailed = ccurl_multi_wakeup(multi.pointer) != CURLM_OK
        wakeUpFails.withLock { $0 = hasFailed }
    }

    func takeAll() -> Messages {
        contents.withLock { contents in
            defer { contents = Messages() }
            return contents
        }
    }
}

/// Frees libcurl's multi handle with the last reference.
///
/// `@unchecked Sendable`: off the loop's thread the pointer is used for `curl_multi_wakeup` only,
/// which libcurl allows from any thread. A body may outlive its loop, and releasing it wakes the
/// handle, so the handle lives as long as any body. ``connections`` is used on the loop's thread,
/// and by `curl_multi_cleanup`, which runs when no other reference is left.
final class MultiHandle: @unchecked Sendable {
    let pointer: UnsafeMutableRawPointer
    /// The context of the callback for closed sockets, which runs until the handle is freed.
    let connections = OriginConnections()

    init(pointer: UnsafeMutableRawPointer) {
        self.pointer = pointer
    }

    deinit {
        ccurl_multi_cleanup(pointer)
    }

    static func check(_ code: CURLMcode, _ operation: String) throws(UserError) {
        guard code != CURLM_OK else { return }
        let message = String(cString: ccurl_multi_strerror(code))
        throw UserError(.failed, "libcurl", "\(operation): \(message) (\(code.rawValue))")
    }
}
