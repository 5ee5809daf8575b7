import Codecs
import PrefetchModel
import Transfers

/// Judges of arriving bodies, by the same rules as the codec workers apply to whole ones.
struct BodyJudges {
    let byHeader: BodyJudge
    let byFormat: BodyJudge

    init(_ rules: HeaderRules) {
        byHeader = BodyJudge { beginning, totalBytes in
            BodyJudge.BodyVerdict(
                HeaderVerdict(onBeginning: beginning, totalBytes: totalBytes, under: rules))
        }
        byFormat = BodyJudge { beginning, _ in
            BodyJudge.BodyVerdict(HeaderVerdict(onFormatOf: beginning, rules.others))
        }
    }
}

extension BodyJudge.BodyVerdict {
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
            memory: pixelBudget)
    }
}
