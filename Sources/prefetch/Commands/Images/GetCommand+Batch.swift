import CacheStorage
import Manifests
import PrefetchModel
import Reporting
import Upkeep

// `prefetch get --batch`

extension GetCommand {
    /// Prints a line for every entry of the list on standard input, in order, as its lines arrive.
    ///
    /// - Throws: `UserError` with status 1 if an image was missing, 2 for an unreadable list.
    func answerBatch() throws {
        let shards = try shards.open()
        var sources = [try BatchSource(shards?.catalog(0) ?? cache.catalog(), self)]
        let runs = sources[0].choice.variantsOfRuns
        var options = input.manifestOptions(variants: runs)
        // The writer of the list expects an answer to each line.
        options.keepsEmptyRows = true
        var entries = try ManifestSequence(arguments: ["-"], options: options)
        var output = LineWriter.standardOutput()
        var counts = (all: 0, missing: 0)
        while let batch = try entries.nextBatch() {
            let answers: [BatchAnswer]
            if let shards {
                answers = try self.answers(for: batch, in: runs, from: shards, &sources)
            } else {
                // `merge` replaces the database, also while this command waits for lines.
                if sources[0].catalog.isReplaced {
                    sources[0].catalog = try cache.catalog()
                }
                answers = try self.answers(for: batch, in: runs, from: sources[0])
            }
            for answer in answers {
                counts.all += 1
                if answer.path == nil { counts.missing += 1 }
                if !json, let line = answer.badLine, let message = answer.message {
                    StandardError.write("prefetch: -:\(line): \(message)")
                }
                if answer.path == nil, existing { continue }
                if json {
                    try output.write(try object(answer, from: sources[answer.source]))
                } else {
                    try output.write(line: answer.path ?? "-")
                }
            }
            // The writer of the list may wait for these lines.
            try output.flush()
            let now = WallClock.now()
            for (number, used) in Dictionary(grouping: answers, by: \.source) {
                sources[number].catalog.noteAccess(
                    to: used.compactMap { $0.path == nil ? nil : $0.item }, at: now)
            }
        }
        try output.finish()
        guard counts.missing > 0, !existing else { return }
        throw UserError(
            .incomplete, "\(counts.missing) of \(counts.all) images are missing, stale or damaged",
            hint: json ? nil : "--json gives the reason for each image")
    }

    /// A cache, and the variant that its runs call by the wanted name.
    private struct BatchSource {
        var catalog: CacheCatalog
        let choice: VariantChoice

        init(_ catalog: CacheCatalog, _ command: GetCommand) throws {
            self.catalog = catalog
            choice = try command.wanted.choice(from: catalog)
        }
    }

    /// Looks up entries in the caches of their shards, which are opened when needed.
    private func answers(
        for batch: EntryBatch, in runs: VariantSet?, from shards: ShardedCaches.Opened,
        _ sources: inout [BatchSource]
    ) throws -> [BatchAnswer] {
        while sources.count < shards.count {
            sources.append(try BatchSource(shards.catalog(sources.count), self))
        }
        let places = batch.text.withUnsafeBytes { text in
            batch.records.map { shards.shards(of: $0, in: text) }
        }
        var answers = [BatchAnswer?](repeating: nil, count: places.count)
        // A domain may have several shards: missing images are looked up in the next one.
        var round = 0
        var waiting = Array(places.indices)
        while !waiting.isEmpty {
            for (shard, numbers) in Dictionary(grouping: waiting, by: { places[$0][round] }) {
                sources[shard].catalog = try shards.catalog(shard)
                var part = batch
                part.records = numbers.map { batch.records[$0] }
                let found = try self.answers(for: part, in: runs, from: sources[shard])
                for (number, var answer) in zip(numbers, found) {
                    answer.source = shard
                    if answer.item != nil || answers[number] == nil { answers[number] = answer }
                }
            }
            round += 1
            waiting.removeAll { answers[$0]?.item != nil || places[$0].count == round }
        }
        return answers.compactMap(\.self)
    }

    private struct BatchAnswer {
        var source = 0
        let key: String
        let shownURL: String
        var item: CacheCatalog.Item?
        /// Nil if the image is missing or must not be used; `message` then tells why.
        var path: String?
        /// Whether the file was compared with its digest.
        var isChecked = false
        var message: String?
        /// The number of a line that is neither a URL nor a stored key.
        var badLine: Int?
    }

    private func answers(
        for batch: EntryBatch, in runs: VariantSet?, from source: BatchSource
    ) throws -> [BatchAnswer] {
        let (catalog, choice) = (source.catalog, source.choice)
        func text(_ range: Range<Int>) -> String {
            String(decoding: batch.text[range], as: UTF8.self)
        }
        let found = try catalog.variants(ofKeys: batch.records.map { text($0.key) })
        let now = WallClock.now()
        let cooling = try json ? catalog.coolingTimes(at: now) : [:]
        return try zip(batch.records, found).map { record, variants in
            var answer = BatchAnswer(
                key: text(record.key), shownURL: RedactedURL(text(record.url)).description)
            var variants = variants
            let absence = batch.absence(
                of: record, key: answer.key, at: variants.first?.resource.urls)
            if absence != nil { variants = [] }
            if variants.isEmpty, record.problem < 0,
                let key = try catalog.key(ofURL: batch.url(of: record).withoutCredentials.text)
            {
                variants = try catalog.variants(of: key)
            }
            do throws(UserError) {
                answer.item = try choice.chosen(
                    of: variants, by: batch.extras(of: record), in: runs)
            } catch {
                answer.message = error.message
                return answer
            }
            if var item = answer.item {
                let wantsFailure = json && item.standing(at: now) != .fresh
                let failure = try wantsFailure ? catalog.failure(of: item.resource) : nil
                do {
                    try check(item, failure: failure, at: now)
                    answer.isChecked = !skipsCheck
                    answer.path = try path(of: &item, in: catalog)
                    answer.item = item
                } catch {
                    answer.message = UserError(reporting: error).description
                }
            } else if record.problem >= 0 {
                // An invalid line may still be a cache key, which was looked up above.
                answer.message = batch.problems[record.problem].failure.message
                answer.badLine = record.line
            } else if let absence {
                answer.message = absence
            } else if json {
                let url = batch.url(of: record).withoutCredentials.text
                let failure = try catalog.failure(of: answer.key) ?? catalog.failure(ofURL: url)
                answer.message =
                    UserError(absenceAfter: failure, at: now, cooling: cooling)
                    .message
            }
            return answer
        }
    }

    private func object(
        _ answer: BatchAnswer, from source: BatchSource
    ) throws(StorageError) -> JSONObject {
        let (catalog, choice) = (source.catalog, source.choice)
        var object: JSONObject
        if let item = answer.item {
            object = JSONObject(
                item, as: choice.name, attributes: try catalog.attributes(of: item.resource),
                at: WallClock.now())
        } else {
            object = JSONObject()
            object.add("key", answer.key)
            object.add("url", answer.shownURL)
            object.add("variant", choice.name)
        }
        object.add("path", answer.path)
        object.add("checked", answer.isChecked)
        object.add("message", answer.message)
        return object
    }
}
