import PrefetchModel

/// The one hint about a host: the cause of most failures, else refusals, else the limit of its
/// pace.
struct HostHint {
    /// The hint without its host: `28 of 30 failures are HTTP 403: access is denied; see …`.
    let text: String
    /// The part of the text that messages about single entries may have, too.
    let advice: String
    /// Whether it explains failures or refusals. Other hints are no news to the author of a list.
    let isAboutTrouble: Bool

    /// Fewer failures or refusals say nothing about a host.
    private static let leastTrouble = 3
    private static let leastResponses = 100

    init?(_ pace: HostPace) {
        if pace.failures.count >= HostHint.leastTrouble, let (cause, count) = pace.failures.main,
            let advice = Advice.about(cause)
        {
            let name = cause.httpStatus.map { "HTTP \($0)" } ?? cause.reason.rawValue
            text = "\(count) of \(counted(pace.failures.count, "failure")): \(name): \(advice)"
            self.advice = advice
            isAboutTrouble = true
        } else if pace.refusals >= HostHint.leastTrouble, pace.refusals * 10 > pace.responses {
            advice = Advice.refusals
            text =
                "\(pace.refusals) of \(counted(pace.responses, "response")) with 429 or 503: \(advice)"
            isAboutTrouble = true
        } else if let limit = pace.limit, pace.responses >= HostHint.leastResponses {
            advice = Advice.about(limit)
            text = "limited by \(limit.rawValue): \(advice)"
            isAboutTrouble = false
        } else {
            return nil
        }
    }
}
