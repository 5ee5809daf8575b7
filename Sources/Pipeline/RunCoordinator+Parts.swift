import CacheStorage
import HTTPSemantics
import PrefetchModel
import Scheduling
import Transfers

/// Bodies that break off, and go on in a later transfer.
extension RunCoordinator {
    /// What names the part of the body that the present transfer brings.
    func partKey(
        of entry: PendingEntry, _ progress: PendingEntry.Progress
    ) -> CodecJob.PartKey {
        CodecJob.PartKey(
            key: entry.key, url: progress.target.withoutCredentials.text)
    }

    /// What an earlier transfer left of the body that an entry's next request is for.
    func part(
        of entry: PendingEntry, _ progress: PendingEntry.Progress
    ) -> PartialStore.Part? {
        guard !progress.ignoresParts, configuration.refresh != .force else { return nil }
        do throws(StorageError) {
            let part = try cache.partials.part(
                key: entry.key, url: progress.target.withoutCredentials.text)
            guard let part, part.size < configuration.maximumBodySize else { return nil }
            return part
        } catch {
            fail(FatalError(error))
            return nil
        }
    }

    /// Has a codec worker keep what came of a body, if the rest of it can be asked for later.
    ///
    /// - Returns: whether the entry's end waits for that.
    func keepsPart(
        of completion: TransferCompletion, _ progress: PendingEntry.Progress
    ) -> Bool {
        guard let broken = completion.brokenBody, fatal == nil, let stages,
            broken.body.count > PartialStore.smallestBody.bytes,
            let entry = pending[completion.id]
        else { return false }
        if case .failure(let failure) = completion.result {
            switch failure.reason {
            case .interrupted, .timeout, .stalled, .tls: break
            default: return false
            }
        }
        let head = broken.head
        // What must not be stored is not stored in part.
        let verdict = Freshness.verdict(
            fields: head.fields, receivedAt: head.receivedAt, transferTime: completion.elapsed,
            rules: configuration.freshness(entry.extras))
        guard case .expires = verdict else { return false }
        let validator: PartialValidator
        let total: Int?
        if broken.body.gap > 0 {
            // The answer was about the body that the part is of.
            guard let part = progress.part else { return false }
            (validator, total) = (part.validator, part.total)
        } else {
            guard
                let found = PartialValidator(fields: head.fields, receivedAt: head.receivedAt)
            else { return false }
            (validator, total) = (found, head.fields.first("content-length").flatMap { Int($0) })
        }
        decoding += 1
        stages.codecs.enqueue(
            CodecJob(
                id: completion.id,
                input: .broken(
                    CodecJob.BrokenDownload(
                        body: broken.body, part: partKey(of: entry, progress),
                        validator: validator, total: total, receivedAt: head.receivedAt))))
        return true
    }

    /// Asks for the whole of a body whose part turned out to be of no use, next at its host and as
    /// part of the same attempt.
    func fetchWhole(_ identifier: Int, _ progress: PendingEntry.Progress) {
        guard !isStopping, let entry = pending[identifier] else {
            return finish(identifier, .cancelled)
        }
        progress.ignoresParts = true
        progress.part = nil
        progress.validation = nil
        progress.visited.removeLast()
        queue(identifier, entry, standing: .next, at: .now)
    }

    /// The fields of a response as they are stored.
    ///
    /// A 206 may leave out the `Last-Modified` that the request named (RFC 9110 §15.3.7), and its
    /// `Content-Range` says nothing of the whole.
    func storedFields(
        of response: Response, _ progress: PendingEntry.Progress
    ) -> [HeaderField] {
        guard response.status == 206 else { return response.fields }
        var fields = response.fields.filter { $0.name.lowercased() != "content-range" }
        if case .lastModified(let date) = progress.part?.validator,
            fields.first("last-modified") == nil
        {
            fields.append(HeaderField(name: "Last-Modified", value: date))
        }
        return fields
    }
}

extension PendingEntry.Progress {
    /// Whether the body that came last began with a part that was there.
    var isContinued: Bool { part != nil && httpStatus == 206 }
}

extension PartialStore.Part {
    /// The fields of a request for the rest.
    var rangeFields: [HeaderField] { validator.rangeFields(from: size.bytes) }

    var continuation: BodyContinuation {
        BodyContinuation(offset: size.bytes) { [self] fields in
            let decision = ResumeDecision.of(
                status: 206, fields: fields, offset: size.bytes, validator: validator,
                knownTotal: total)
            return if case .append(let total) = decision {
                .continues(total: total)
            } else {
                .isOfNoUse
            }
        }
    }
}
