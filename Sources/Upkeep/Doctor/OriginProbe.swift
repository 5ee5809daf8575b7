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

extension Diagnosis.OriginAnswer {
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
