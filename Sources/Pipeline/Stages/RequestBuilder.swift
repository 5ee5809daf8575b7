import CacheStorage
import Codecs
import EntryLifecycle
import HTTPSemantics
import PrefetchModel
import Transfers

/// Builds the transfer requests of entry machines, and the address rules of their redirects.
struct RequestBuilder: Sendable {
    private let transfers: TransferConfiguration
    /// Judge arriving bodies by the same rules as the codec workers apply to whole ones.
    private let byHeader: BodyJudge
    private let byFormat: BodyJudge
    private let bodyUse: BodyUse

    init(_ configuration: RunConfiguration, _ transfers: TransferConfiguration) {
        bodyUse = configuration.bodies.use
        self.transfers = transfers
        let rules = configuration.images.headerRules
        byHeader = { beginning, totalBytes in
            BodyVerdict(
                HeaderVerdict(onBeginning: beginning, totalBytes: totalBytes, under: rules))
        }
        byFormat = { beginning, _ in
            BodyVerdict(HeaderVerdict(onFormatOf: beginning, rules.others))
        }
    }

    /// Builds a request; `isAlone` when no other entry of the host runs or waits. With
    /// `judgesFormatOnly` the rest of the header does not refuse the body: the limits apply to the
    /// variants of the run, not to a line's own ones.
    func request(
        _ request: EntryRequest, of entry: Entry, id: Int, isAlone: Bool, judgesFormatOnly: Bool,
        isFiltered: Bool
    ) -> TransferRequest {
        var transfer = TransferRequest(url: request.url)
        transfer.id = id
        transfer.fields = request.conditions + (request.part?.rangeFields ?? [])
        transfer.userFields = entry.headers
        transfer.isForeign = request.isForeign
        transfer.addressRule = request.addressRule
        transfer.bodyUse = bodyUse
        transfer.continuation = request.part?.continuation
        // A filter needs the whole body.
        if !isFiltered { transfer.judge = judgesFormatOnly ? byFormat : byHeader }
        transfer.isLastOfHost = isAlone
        return transfer
    }

    func redirectRule(from address: AddressClass?) -> AddressRule {
        transfers.addressRule(afterRedirectFrom: address)
    }
}

extension PartialBody {
    fileprivate var rangeFields: [HeaderField] { validator.rangeFields(from: count) }

    fileprivate var continuation: BodyContinuation {
        let judge: @Sendable ([HeaderField]) -> ContinuationVerdict = { [self] fields in
            let decision = ResumeDecision.of(
                status: 206, fields: fields, offset: count, validator: validator, knownTotal: total)
            return if case .append(let total) = decision {
                .continues(total: total)
            } else {
                .isOfNoUse
            }
        }
        return (count, judge)
    }
}

extension BodyVerdict {
    fileprivate init(_ verdict: HeaderVerdict) {
        switch verdict {
        case .undecided:
            self = .undecided
        case .passed:
            self = .accepted
        case .refused(let error):
            // A beginning that can be judged is long enough for a signature, however the body ends.
            self = .refused(error.framedFailure)
        }
    }
}

extension ImageRules {
    var headerRules: HeaderRules {
        HeaderRules(
            limits: CodecLimits(maximumPixels: maximumPixels, maximumTime: maximumDecodeTime),
            recipes: variants.map(\.recipe), check: check, others: otherFormats, wanted: filter,
            memory: pixelBudget, memoryWithFile: memory)
    }
}
