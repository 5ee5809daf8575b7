import CacheStorage
import EntryLifecycle
import HTTPSemantics
import PrefetchModel
import Transfers

/// Converts the requests of entry machines for the transfer loop, and its responses for the
/// machines.
struct RequestBuilder: Sendable {
    private let transfers: TransferConfiguration
    private let judges: BodyJudges

    init(_ transfers: TransferConfiguration, _ judges: BodyJudges) {
        self.transfers = transfers
        self.judges = judges
    }

    /// Builds a request; `isAlone` when no other entry of the host runs or waits. With
    /// `judgesFormatOnly` the rest of the header does not refuse the body.
    func request(
        _ inquiry: Inquiry, of entry: Entry, id: Int, isAlone: Bool, judgesFormatOnly: Bool
    ) -> TransferRequest {
        // The limits apply to the variants of the run, not to a line's own ones.
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
    /// The fields of a range request for the rest.
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
