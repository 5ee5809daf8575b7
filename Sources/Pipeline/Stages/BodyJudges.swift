import CacheStorage
import Codecs
import EntryLifecycle
import PrefetchModel
import Transfers

/// What judges bodies while they arrive, by the same rules as the codec workers judge them whole.
struct BodyJudges {
    /// By all that the header says.
    let byHeader: BodyJudge
    /// By the format alone.
    let byFormat: BodyJudge

    init(_ rules: HeaderRules) {
        byHeader = BodyJudge { beginning, totalBytes in
            BodyJudge.Verdict(
                HeaderVerdict(onBeginning: beginning, totalBytes: totalBytes, under: rules))
        }
        byFormat = BodyJudge { beginning, _ in
            BodyJudge.Verdict(HeaderVerdict(onFormatOf: beginning, rules.others))
        }
    }
}

extension BodyJudge.Verdict {
    fileprivate init(_ verdict: HeaderVerdict) {
        switch verdict {
        case .undecided:
            self = .undecided
        case .passed:
            self = .accepted
        case .refused(let error):
            // A beginning that can be judged is long enough for a signature, however the body ends.
            let failure = error.failure(sourceBytes: .max, hasFramedBody: true)
            self = .refused(Failure(failure.reason, failure.message))
        }
    }
}

extension ImageRules {
    /// What images of this run have to keep to.
    var headerRules: HeaderRules {
        HeaderRules(
            limits: CodecLimits(maximumPixels: maximumPixels, maximumTime: maximumDecodeTime),
            recipes: variants.map(\.recipe), check: check, others: otherFormats, wanted: filter,
            memory: pixelBudget)
    }
}
