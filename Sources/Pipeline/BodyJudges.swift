import CacheStorage
import Codecs
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
            BodyJudge.Verdict(HeaderVerdict(onFormatOf: beginning))
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
            let (reason, message) = error.failure(sourceBytes: .max, hasFramedBody: true)
            self = .refused(BodyRefusal(reason: reason, message: message))
        }
    }
}

extension RunConfiguration {
    /// What images of this run have to keep to.
    var headerRules: HeaderRules {
        HeaderRules(
            limits: CodecLimits(maximumPixels: maximumPixels, maximumTime: maximumDecodeTime),
            recipes: [recipe], check: check, memory: pixelBudget)
    }
}

extension RunCoordinator {
    /// What judges the body of an entry's next response.
    ///
    /// Some bytes are not judged by their header even when they are whole: those that are stored
    /// already, however the limits have changed, and those that ended a run, for which another reason
    /// is given. Whether a body is one of them is known at its end.
    func bodyJudge(for progress: PendingEntry.Progress) -> BodyJudge {
        let mayBeKnown = known(progress) != nil
        let mayHaveCrashed = !configuration.retriesFailed && stages?.crashes.isEmpty == false
        return mayBeKnown || mayHaveCrashed ? bodyJudges.byFormat : bodyJudges.byHeader
    }

    /// Ends an entry whose body was refused before all of it had come, on the way that it would have
    /// gone: what must not be stored is ``FailureReason/uncacheable``, whatever it is.
    func refuse(
        _ refusal: BodyRefusal, _ response: Response, _ transferTime: Duration,
        for identifier: Int, _ progress: PendingEntry.Progress
    ) {
        guard expiry(of: response.fields, response, transferTime, for: identifier) != nil else {
            return
        }
        guard !isCancelling, fatal == nil, let stages, let entry = pending[identifier] else {
            return finish(identifier, .cancelled)
        }
        decoding += 1
        stages.codecs.enqueue(
            CodecJob(id: identifier, input: .refused(refusal, part: partKey(of: entry, progress))))
    }
}
