internal import CCurl
package import PrefetchModel
import URLParsing

/// Turns requests into completions with libcurl's multi interface.
///
/// The thread that calls ``run(deliver:)`` owns the multi handle and every easy handle. Other
/// threads put requests into an inbox and wake the loop.
package final class TransferLoop: Sendable {
    private let multi: MultiHandle
    private let configuration: TransferConfiguration
    private let wallClock: @Sendable () -> Timestamp
    private let inbox: Inbox
    private let budget: BodyBudget

    /// `wallClock` gives the time of each response, which its freshness is calculated from.
    package init(
        configuration: TransferConfiguration, wallClock: @escaping @Sendable () -> Timestamp
    ) throws(UserError) {
        try CurlLibrary.load()
        // libcurl counts the calls, and allows them from any thread since 7.84.
        let code = ccurl_global_init(Int(CURL_GLOBAL_DEFAULT))
        guard code == CURLE_OK, let multi = ccurl_multi_init() else {
            throw UserError(libcurl: "initialisation", code)
        }
        self.multi = MultiHandle(pointer: multi)
        ccurl_multi_set_long(
            multi, CURLMOPT_MAXCONNECTS, configuration.maximumIdleConnections)
        self.configuration = configuration
        self.wallClock = wallClock
        let inbox = Inbox(multi: self.multi)
        self.inbox = inbox
        budget = BodyBudget(
            capacity: configuration.bodyBudget.bytes, sharedBodies: configuration.sharedBodies
        ) {
            inbox.put { $0.resumes = true }
        }
    }

    // MARK: From any thread

    /// Begins transfers. The caller limits their number.
    package func start(_ requests: [TransferRequest]) {
        inbox.put { $0.requests += requests }
    }

    /// Ends every transfer that is running or waiting in the inbox, with `.cancelled`.
    package func cancelAll() {
        inbox.put { $0.cancels = true }
    }

    /// Makes ``run(deliver:)`` cancel all transfers and return.
    package func stop() {
        inbox.put { $0.stops = true }
    }

    // MARK: The loop's thread

    /// Runs transfers until ``stop()``.
    ///
    /// - Parameter deliver: called on this thread with the transfers that ended since the last
    ///   call, at least one. Every started request is delivered once.
    /// - Throws: when the multi handle fails, which no single transfer can cause, and at the end,
    ///   when the cookie jar cannot be written. Running transfers have been delivered as cancelled
    ///   then.
    package func run(deliver: ([TransferCompletion]) -> Void) throws(UserError) {
        // For proxies with international names; names in URLs are converted already.
        try InternationalLocale().run { () throws(UserError) -> Void in
            let environment = try TransferEnvironment(
                configuration, budget, multi.connections)
            let thread = LoopThread(multi, inbox, environment, wallClock: wallClock)
            try environment.watchdog.run { () throws(UserError) -> Void in
                try thread.run(deliver: deliver)
            }
        }
    }
}

/// The versions of the loaded libcurl and its libraries.
package enum CurlVersion {
    /// As in `7.88.1 (OpenSSL/3.0.17 zlib/1.2.13 nghttp2/1.52.0)`. Needs no setup.
    package static func text() throws(UserError) -> String {
        try CurlLibrary.load()
        guard let text = ccurl_version() else { return "" }
        let words = String(cString: text).split(separator: " ", maxSplits: 1)
        let version = words.first?.split(separator: "/").last ?? ""
        return words.count > 1 ? "\(version) (\(words[1]))" : String(version)
    }
}
