package import PrefetchModel

extension Diagnosis {
    package enum OriginAnswer: Hashable, Sendable {
        /// `clockOffset` is the lead of the origin's clock; nil without a `Date` field.
        case response(status: Int, elapsed: Duration, clockOffset: Duration?)
        case failure(reason: FailureReason, curlCode: Int?, message: String)
        /// Not in the time that there was.
        case none
    }

    /// CURLE_COULDNT_RESOLVE_PROXY and CURLE_PROXY.
    private static let codesOfProxies: Set<Int> = [5, 97]

    package static func origin(_ origin: String, _ answer: OriginAnswer) -> Diagnosis {
        switch answer {
        case .response(407, _, _):
            return .wrong(
                .origin, "\(origin): the proxy requires credentials (407)",
                remedy: "set them in the proxy's URL (https_proxy, --proxy)")
        case .response(let status, let elapsed, _):
            return .ok(.origin, "\(origin): \(status) in \(elapsed.wholeMilliseconds) ms")
        case .none:
            return .wrong(.origin, "\(origin): no response in time", remedy: remedy(for: .timeout))
        case .failure(let reason, let code, let message):
            let isOfProxy = code.map(codesOfProxies.contains) ?? false
            return .wrong(
                .origin, "\(origin): \(reason.rawValue): \(message)",
                remedy: isOfProxy
                    ? "check that the proxy responds (http_proxy, https_proxy, all_proxy, no_proxy)"
                    : remedy(for: reason))
        }
    }

    private static func remedy(for reason: FailureReason) -> String? {
        switch reason {
        case .dns: "check the resolver: getent hosts NAME"
        case .connect, .timeout, .stalled, .interrupted:
            "check that it is reachable: curl -I URL"
        case .tls:
            "check the clock and the system's CA certificates; --cacert FILE trusts another CA"
        case .refusedAddress: "requests to its address are not allowed"
        default: nil
        }
    }

    /// The tolerated offset of the clock, as in `Timestamp.toleratedClockStep`.
    private static let toleratedOffset = Duration.seconds(300)

    /// Compares the clock with the median of the origins' clocks, since single ones may be wrong.
    package static func clock(_ answers: [OriginAnswer]) -> Diagnosis {
        let offsets = answers.compactMap { answer -> Duration? in
            guard case .response(_, _, let offset) = answer else { return nil }
            return offset
        }.sorted()
        guard !offsets.isEmpty else {
            return .unknown(.clock, "no origin has sent a date")
        }
        let offset = offsets[offsets.count / 2]
        let seconds = offset.components.seconds
        guard offset > toleratedOffset || offset < .zero - toleratedOffset else {
            // `Date` has a resolution of one second.
            let text = abs(seconds) <= 1 ? "right" : "off by \(abs(seconds)) s"
            return .ok(.clock, "\(text), by \(counted(offsets.count, "origin"))")
        }
        return .wrong(
            .clock,
            "\(abs(seconds)) s \(seconds > 0 ? "behind" : "ahead of") \(counted(offsets.count, "origin"))",
            remedy: "set the clock; freshness and certificates depend on it")
    }
}
