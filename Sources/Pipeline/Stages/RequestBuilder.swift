import CacheStorage
import EntryLifecycle
import HTTPSemantics
import PrefetchModel
import Transfers

/// Turns what machines ask into requests, and responses into what machines judge.
struct RequestBuilder: Sendable {
    private let transfers: TransferConfiguration
    private let judges: BodyJudges

    init(_ transfers: TransferConfiguration, _ judges: BodyJudges) {
        self.transfers = transfers
        self.judges = judges
    }

    /// Makes a request; `isAlone` when nothing else of the host runs or waits. With `judgesFormatOnly` the
    /// body is not to be refused for what its header says.
    func request(
        _ inquiry: Inquiry, of entry: Entry, id: Int, isAlone: Bool, judgesFormatOnly: Bool
    ) -> TransferRequest {
        // The limits were judged for the variants of the run, not for those of a line of its own.
        let judgesHeader = !judgesFormatOnly && entry.extras?.changesVariants != true
        return TransferRequest(
            id: id, url: inquiry.url,
            fields: inquiry.conditions + (inquiry.part?.rangeFields ?? []),
            userFields: entry.extras?.headers ?? [], isForeign: inquiry.isForeign,
            addressRule: inquiry.addressRule, continuation: inquiry.part?.continuation,
            judge: judgesHeader ? judges.byHeader : judges.byFormat, isLastOfHost: isAlone)
    }

    func answer(_ response: Response, _ body: Body?, from address: AddressClass?) -> Answer {
        let redirect: Answer.Redirect =
            switch response.redirect {
            case .to(let url): .to(url)
            case .nowhere(let location, let message):
                .nowhere(location: location, message: message)
            case nil: .none
            }
        return Answer(
            status: response.status, fields: response.fields, receivedAt: response.receivedAt,
            body: body.map { .received(gap: $0.gap) } ?? .none, redirect: redirect,
            ruleForRedirect: transfers.addressRule(afterRedirectFrom: address))
    }
}

extension PartialBody {
    /// The fields of a request for the rest.
    fileprivate var rangeFields: [HeaderField] { validator.rangeFields(from: count) }

    fileprivate var continuation: BodyContinuation {
        BodyContinuation(offset: count) { [self] fields in
            let decision = ResumeDecision.of(
                status: 206, fields: fields, offset: count, validator: validator,
                knownTotal: total)
            return if case .append(let total) = decision {
                .continues(total: total)
            } else {
                .isOfNoUse
            }
        }
    }
}
