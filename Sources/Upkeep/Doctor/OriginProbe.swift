import HTTPSemantics
package import Pipeline
package import PrefetchModel
import Transfers

/// Sends one request to each origin, all together, through the transfers of a run: the same name
/// resolution, proxies, address checks and certificates.
package struct OriginProbe: Sendable {
    package static let originLimit = 8
    package static let timeLimit = Duration.seconds(10)

    private let configuration: TransferConfiguration
    private let wallClock: @Sendable () -> Timestamp

    /// Takes the configuration of a run, with other time limits.
    package init(
        _ configuration: RunConfiguration, wallClock: @escaping @Sendable () -> Timestamp
    ) {
        var transfers = configuration.transfers
        transfers.limits.connectTimeout = OriginProbe.timeLimit
        transfers.limits.totalTimeout = OriginProbe.timeLimit
        transfers.requests.savesCookies = false
        self.configuration = transfers
        self.wallClock = wallClock
    }

    /// Requests the root of each origin (scheme, host and port); any response counts, and its body
    /// is not read. Returns the line about each origin, in their order, and one about the clock.
    package func diagnoses(of origins: [String]) -> [Diagnosis] {
        guard !origins.isEmpty else { return [.ok(.origin, "the cache knows none")] }
        do {
            let answers = try ask(origins)
            return zip(origins, answers).map { Diagnosis.origin($0, $1) } + [.clock(answers)]
        } catch {
            return [.unknown(.origin, error.description, remedy: error.hint)]
        }
    }

    private func ask(_ origins: [String]) throws(UserError) -> [Diagnosis.OriginAnswer] {
        let transfers = BlockingTransfers(configuration, wallClock: wallClock)
        let started = origins.map { origin in
            var request = TransferRequest(url: RequestURL(normalized: origin + "/"))
            request.judge = { _, _ in .refused(Failure(.internal, "")) }
            return transfers.start(request)
        }
        // Each transfer ends by its own limit; this limit is for anything outside it.
        let deadline = ContinuousClock.now + OriginProbe.timeLimit + .seconds(2)
        var answers: [Diagnosis.OriginAnswer] = []
        for transfer in started {
            let end = try transfers.wait(for: transfer, until: deadline)
            answers.append(end.map { Diagnosis.OriginAnswer($0) } ?? Diagnosis.OriginAnswer.none)
        }
        return answers
    }
}

extension Diagnosis {
    package enum OriginAnswer: Hashable, Sendable {
        /// `clockOffset` is the lead of the origin's clock; nil without a `Date` field.
        case response(status: Int, elapsed: Duration, clockOffset: Duration?)
        case failure(reason: FailureReason, curlCode: Int?, message: String)
        /// Not in the time that there was.
        case none

        fileprivate init(_ completion: TransferCompletion) {
            switch completion.result {
            case .response(let response, _), .refused(let response, _):
                let date = response.fields.first("date").flatMap {
                    HTTPDate.parse($0, relativeTo: response.receivedAt)
                }
                self = .response(
                    status: response.status, elapsed: completion.elapsed,
                    clockOffset: date.map {
                        .milliseconds($0.milliseconds - response.receivedAt.milliseconds)
                    })
            case .failure(let failure):
                // Its body had a fault, which does not count here.
                if let status = failure.httpStatus {
                    self = .response(status: status, elapsed: completion.elapsed, clockOffset: nil)
                    return
                }
                self = .failure(
                    reason: failure.reason, curlCode: failure.curlCode, message: failure.message)
            case .cancelled: self = .none
            }
        }
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
