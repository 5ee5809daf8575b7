import HTTPSemantics
import PrefetchModel
import Scheduling
import Transfers

extension HostPacing.Signal {
    /// Converts the result of a finished transfer.
    init(_ result: TransferCompletion.Result) {
        switch result {
        case .cancelled:
            self = .nothing
        case .refused:
            self = .answered
        case .response(let response, _):
            guard response.status == 429 || response.status == 503 else {
                self = .answered
                return
            }
            self = .overloaded(
                retryAfter: RetryAfter.delay(
                    of: response.fields, receivedAt: response.receivedAt))
        case .failure(let failure):
            // A host that began to respond is reachable.
            guard failure.httpStatus == nil else {
                self = .brokeOff
                return
            }
            switch failure.persistence {
            case .absent:
                self = .absent(failure.reason)
                return
            case .untrusted:
                self = .untrusted
                return
            case .unknown: break
            }
            switch failure.reason {
            case .dns, .connect, .tls, .timeout, .stalled, .interrupted:
                self = .unreachable(failure.reason)
            case .invalidEntry, .unsupportedScheme, .refusedAddress, .redirect, .httpStatus,
                .tooLarge, .notAnImage, .corruptImage, .tooManyPixels, .unsupportedImage,
                .otherFormat, .belowMinimumSize, .overMaximumAspect, .belowMinimumBytes,
                .uncacheable, .disk, .internal:
                self = .nothing
            }
        }
    }
}
