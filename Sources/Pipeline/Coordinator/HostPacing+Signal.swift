import HTTPSemantics
import PrefetchModel
import Scheduling
import Transfers

extension HostPacing.Observation {
    init(_ completion: TransferCompletion, isRepeated: Bool) {
        self = .nothing
        if case .response(let response, _) = completion.result {
            quota = RateLimitFields.quota(of: response.fields, receivedAt: response.receivedAt)
        }
        latency = completion.connection?.timeToFirstByte
        self.isRepeated = isRepeated
        isShared = completion.connection?.version == .http2
    }
}

extension HostPacing.Signal {
    init(_ result: TransferCompletion.TransferResult) {
        switch result {
        case .cancelled:
            self = .nothing
        case .refused:
            self = .answered
        case .response(let response, _):
            guard Response.isRefusalForPace(response.status) else {
                self = .answered
                return
            }
            self = .overloaded(
                retryAfter: RetryAfter.delay(of: response.fields, receivedAt: response.receivedAt))
        case .failure(let failure):
            // A host that began to respond is reachable.
            self = failure.httpStatus == nil ? HostPacing.Signal(ofUnanswered: failure) : .brokeOff
        }
    }

    private init(ofUnanswered failure: TransferFailure) {
        switch failure.persistence {
        case .absent: self = .absent(failure.reason)
        case .untrusted: self = .untrusted
        case .unknown:
            switch failure.reason {
            case .dns, .connect, .tls, .timeout, .stalled, .interrupted:
                self = .unreachable(failure.reason)
            case .invalidEntry, .unsupportedScheme, .refusedAddress, .redirect, .httpStatus,
                .tooLarge, .notAnImage, .corruptImage, .tooManyPixels, .unsupportedImage,
                .uncacheable, .otherFormat, .belowMinimumSize, .overMaximumAspect,
                .belowMinimumBytes, .notSelected, .robots, .bodyFilter, .disk, .internal:
                self = .nothing
            }
        }
    }
}
