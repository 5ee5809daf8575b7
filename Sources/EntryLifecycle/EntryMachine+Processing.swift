import HTTPSemantics
package import PrefetchModel

extension EntryMachine {
    /// Takes the result of the codec workers.
    ///
    /// `decode` and `encode` are processor times, nil where nothing was decoded. `remark`
    /// describes the stored images; empty for none.
    package mutating func processed(
        _ result: ProcessingResult, decode: Duration?, encode: Duration?, remark: String,
        in context: EntryContext
    ) -> EntryAction {
        guard case .processing(var processing) = state else {
            preconditionFailure("a result belongs to an entry that is with the codec workers")
        }
        history.stages.decode = decode
        history.stages.encode = encode
        processing.add(remark)
        switch result {
        case .made(let ends, let source):
            return write(ends, source, processing, context)
        case .unchanged:
            guard case .body(_, let validation) = processing.source, let copy = findings.copy else {
                preconditionFailure("only the body of a copy is unchanged")
            }
            return commit(
                .kept(resource: copy.resource, validation, used: context.used),
                copy.keptEnds.changes(to: copy, context),
                .stored(
                    .downloaded,
                    EntryEnd.Stored(copy.keptEnds, validation, remark: "the same bytes as before")),
                context)
        case .originalDamaged:
            if case .seed = processing.source { return fetchAgain(context) }
            return fetchWithoutOriginal(context)
        case .partDamaged:
            return fetchWhole(context)
        case .cancelled:
            return cancel()
        case .failed(let failure):
            if processing.isContinued, failure.reason.mayComeFromPart {
                // The two parts may belong to different bodies, whatever the origin claims.
                return fetchWhole(context)
            }
            return fail(namingRedirect(failure), context)
        case .underivable(let failure):
            if failure.reason.isExclusion {
                return finish(.excluded(message: failure.message, reason: failure.reason))
            }
            return finish(failure, .ours)
        }
    }

    /// The failure of a body that is no image, with the URL that it came from after a redirect: a
    /// page to sign in, for instance.
    private func namingRedirect(_ failure: Failure) -> Failure {
        let target = journey.route.target.withoutCredentials
        guard failure.reason == .notAnImage, target != entry.url.withoutCredentials else {
            return failure
        }
        return Failure(failure.reason, "\(failure.message), after a redirect to \(target)")
    }

    /// Takes the stored part of a body that broke off; nil when it could not be stored.
    package mutating func partSaved(_ part: PartialBody?, in context: EntryContext) -> EntryAction {
        guard case .savingPart(let failure) = state else {
            preconditionFailure("only the body of a broken transfer is kept")
        }
        journey.findings.part = part
        return failure.map { fail($0, context) } ?? cancel()
    }

    // MARK: Changes to write

    private mutating func write(
        _ ends: [VariantEnd], _ source: SourceImage, _ processing: Processing,
        _ context: EntryContext
    ) -> EntryAction {
        switch processing.source {
        case .refusal:
            preconditionFailure("nothing is made of a refused body")
        case .original(let confirmation):
            guard let copy = findings.copy else {
                preconditionFailure("a stored original has its copy")
            }
            return commit(
                copy, ends, confirmation, remark: processing.remark, warning: source.warning,
                context)
        case .seed(let validation):
            return commit(
                .new(source, validation), ends.changes(context),
                .stored(.fresh, EntryEnd.Stored(ends, validation, remark: processing.remark)),
                context)
        case .body(_, let validation):
            var stored = EntryEnd.Stored(ends, validation, remark: processing.remark)
            stored.placeholder = source.placeholder
            stored.warning = source.warning
            return commit(
                .new(source, validation), ends.changes(context),
                EntryEnd(stored, .downloaded, ends.failure) { .ofRequest($0) }, context)
        }
    }

    mutating func commit(
        _ copy: StoredCopy, _ ends: [VariantEnd], _ confirmation: ResourceValidation?,
        remark: String, warning: String? = nil, _ context: EntryContext
    ) -> EntryAction {
        var stored: EntryEnd.Stored
        if let confirmation {
            stored = EntryEnd.Stored(ends, confirmation, remark: remark)
        } else {
            var expiresAt = copy.validation.expiresAt
            if case .derivable(let newExpiry) = entry.state {
                expiresAt = max(expiresAt, newExpiry)
            }
            stored = EntryEnd.Stored(variants: ends, expiresAt: expiresAt, remark: remark)
        }
        stored.warning = warning
        let outcome: Outcome = confirmation == nil ? .derived : .revalidated
        return commit(
            .kept(resource: copy.resource, confirmation, used: context.used),
            ends.changes(to: copy, context),
            EntryEnd(stored, outcome, ends.failure) { _ in .ours }, context)
    }

    mutating func commit(
        _ body: ImageChange.BodyChange, _ changes: [VariantChange], _ end: EntryEnd,
        _ context: EntryContext
    ) -> EntryAction {
        state = .committing(end)
        guard context.variants != nil else { return cancel() }
        var isIncomplete = false
        if case .failed(let failed) = end {
            isIncomplete = failed.blame == .local || failed.memory(httpStatus: httpStatus) != .none
        }
        return .write(
            ImageChange(
                key: entry.key, body: body, variants: changes,
                attributes: entry.extras?.attributes ?? [], isIncomplete: isIncomplete))
    }
}

extension Processing {
    fileprivate mutating func add(_ text: String) {
        guard !text.isEmpty else { return }
        remark = remark.isEmpty ? text : "\(remark); \(text)"
    }

    fileprivate var isContinued: Bool {
        if case .body(isContinued: true, _) = source { true } else { false }
    }
}

extension StoredCopy {
    /// The stored images as results. For a complete copy only.
    var keptEnds: [VariantEnd] { kept.compactMap { $0.map { .kept($0.image) } } }
}

extension EntryContext {
    var used: [RequestedVariant] { variants.map(Array.init) ?? [] }
}

extension [VariantEnd] {
    /// The rows that these results change: all of a new body, and the different ones of `copy`.
    fileprivate func changes(
        to copy: StoredCopy? = nil, _ context: EntryContext
    ) -> [VariantChange] {
        guard let variants = context.variants else { return [] }
        return indices.compactMap { position in
            guard let image = self[position].image else { return nil }
            let isKept = if case .kept = self[position] { true } else { false }
            if isKept, copy?.kept[position]?.isNamed == true { return nil }
            return VariantChange(
                variants[position], image: image, createdAt: context.now, isKept: isKept)
        }
    }

    fileprivate var failure: Failure? {
        for case .failed(let failure) in self { return failure }
        return nil
    }
}

extension EntryEnd {
    /// The end after the commit of these variants: with `outcome`, unless one of them has failed.
    fileprivate init(
        _ stored: Stored, _ outcome: Outcome, _ failure: Failure?, blame: (Failure) -> Failed.Blame
    ) {
        self =
            failure.map { .failed(Failed(failure: $0, blame: blame($0), stored: stored)) }
            ?? .stored(outcome, stored)
    }
}

extension EntryEnd.Stored {
    fileprivate init(_ ends: [VariantEnd], _ validation: ResourceValidation, remark: String) {
        self.init(
            variants: ends,
            expiresAt: validation.expiresAt == Freshness.alwaysStale ? nil : validation.expiresAt,
            remark: remark)
    }
}

extension FailureReason {
    fileprivate var mayComeFromPart: Bool {
        [.corruptImage, .notAnImage, .interrupted].contains(self)
    }
}
