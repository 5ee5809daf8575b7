import PrefetchModel

// The reaction of adaptive pacing to 429 and 503.

extension HostPacing {
    /// Slows down for a refusal: fewer transfers at once first, then fewer a second. Returns the
    /// cause.
    mutating func refusedForPace(
        _ start: NumberedStart, isRate: Bool, isRepeated: Bool, running: Int, at now: Instant,
        _ rules: PaceRules
    ) -> RefusalCause {
        overloadsInARow += 1
        if !isRepeated { refusals.noteEntry() }
        // Transfers that were under way at the last refusal report the same one.
        guard start.number > refusals.last?.starts ?? 0 else {
            return refusals.areUnavoidable ? .otherwise : .pace
        }
        if refusals.areUnavoidable {
            guard overloadsInARow >= RefusalSeries.refusalsForPace else { return .otherwise }
            refusals.areUnavoidable = false
        }
        // The interval between two starts is the pause, unless it has not helped.
        defer {
            if rate.limit != nil, !refusals.hasAnswered, refusals.entriesInARow > 1 {
                pause(start, at: now, rules)
            }
            refusals.hasAnswered = false
        }
        let isKnown = rate.limit != nil || adaptive.refusedLimit != nil
        // The image may be the cause: others decide.
        if isRepeated, refusals.hasAnswered || rate.limit != nil {
            return isKnown && rate.hasAnswers ? .pace : .otherwise
        }
        let isFirst = refusals.last?.starts ?? 0 == 0
        if isFirst { refusals.formerLimit = adaptive.limit }
        let pace = rate.limit ?? Double(adaptive.limit)
        let isInVain = refusals.goesOnInVain(pace, at: Moment(now)) && !isRate
        // A single one may be due to its image.
        guard isRate || isKnown || refusals.entriesInSeries > 1 else {
            refusals.last = (refusals.last?.starts ?? 0, Moment(now))
            refusals.answers = 0
            let isAlone = running == 0 && !rate.hasAnswers
            return isRepeated || isAlone ? .otherwise : .unclear
        }
        let hasHelped = isFirst || refusals.answers >= adaptive.limit
        refusals.last = (starts.count, Moment(now))
        refusals.answers = 0
        guard !isInVain else {
            refusals.areUnavoidable = true
            adaptive.forgetRefusals(limit: refusals.formerLimit)
            rate.forget()
            return .otherwise
        }
        let (count, atOnce) = (starts.count, max(start.running, running + 1))
        if rate.limit == nil, !isRate, atOnce > 1, hasHelped || !rate.hasAnswers,
            adaptive.refused(
                start: start.number, of: count, running: atOnce, halves: !refusals.hasAnswered)
        {
            return .pace
        }
        if rate.limit == nil { refusals.fastest = 0 }
        rate.refused(
            at: Moment(now), isClosed: refusals.entriesInARow >= RefusalSeries.entriesToClose)
        refusals.fastest = max(refusals.fastest, rate.refused)
        // A host without any good response may refuse this image only, and for long.
        return rate.hasAnswers || refusals.entriesInARow > 1 ? .pace : .otherwise
    }

    private mutating func pause(_ start: NumberedStart, at now: Instant, _ rules: PaceRules) {
        refused(
            start: start.number, at: now,
            // Without patience the first pause would be the end.
            isOften: rules.patience > .zero || overloadsInARow >= HostPacing.failuresToOpen,
            .overloaded(answers: overloadsInARow), rules)
    }
}
