import CacheStorage
import Exporting
import Manifests
import PrefetchModel
import Reporting
import Threading
import Upkeep

/// The images to export, and the losses.
struct ExportCollection {
    enum Loss: String, CaseIterable {
        case missing
        case invalid
        case collision
        case unnamed
        /// A web server could obey or run its name.
        case unsafe
        case damaged
        case foreign
    }

    private(set) var plan: ExportPlan
    private(set) var stale = 0
    private(set) var losses = Losses()
    /// The images that a data set leaves out, since its readers cannot decode them.
    private(set) var undecoded: [ImageFormat: Int] = [:]
    /// The part of the lists that hides images, unless the user allows that. Files of earlier
    /// exports stay then.
    var gap: ListGap?
    /// Images with damaged content files, which are not planned.
    private let damaged: Set<ContentDigest>
    /// The reasons of the first losses.
    private(set) var messages: [String] = []
    private var isShortened = false

    private static let mostMessages = 20

    init(plan: ExportPlan, without damaged: Set<ContentDigest>) {
        self.plan = plan
        self.damaged = damaged
    }

    /// Plans an image, or notes why it is not exported.
    mutating func add(_ finding: ExportFinding) {
        switch finding {
        case .image(let image, let path, let place, let isStale):
            let shown = { (place.map { "\($0): " } ?? "") + "\(RedactedURL(image.url))" }
            switch path {
            case .failure(let problem):
                plan.addMissing(MissingEntry(image, reason: "unnamed"))
                report(
                    "\(shown()): not exported: \(problem.message)",
                    as: problem.isUnsafe ? .unsafe : .unnamed)
            case .success where damaged.contains(image.stored.digest):
                plan.addMissing(MissingEntry(image, reason: "damaged"))
                report(shown(), .damaged)
            case .success(let path):
                if let other = plan.add(image, as: path) {
                    plan.addMissing(MissingEntry(image, reason: "collision"))
                    report(shown(), at: path, of: other)
                } else if isStale {
                    stale += 1
                }
            }
        case .none(let entry, let message, let loss):
            plan.addMissing(entry)
            report(message, as: loss)
        case .undecoded(let entry, let format):
            plan.addMissing(entry)
            undecoded[format, default: 0] += 1
        }
    }

    /// Completes the plan, and notes the images that collide after that.
    mutating func settle() {
        for loss in plan.settle() {
            report("\(RedactedURL(loss.image.url))", at: loss.path, of: loss.other)
        }
    }

    private mutating func report(_ shown: String, at path: String, of other: ExportedImage) {
        report(
            "\(shown): not exported: \(path) is the file of \(RedactedURL(other.url))",
            as: .collision)
    }

    /// Notes the reason of a loss, and counts it. The first of each kind always has a message.
    mutating func report(_ message: String, as loss: Loss) {
        losses.counts[loss, default: 0] += 1
        if messages.count < ExportCollection.mostMessages || losses.counts[loss] == 1 {
            messages.append(message)
        } else if !isShortened {
            isShortened = true
            messages.append("… the other images are only counted")
        }
    }

    /// Notes a file, or the entry of one, that is not written.
    mutating func report(_ path: String, _ problem: ExportTree.Problem) {
        switch problem {
        case .damaged:
            report("\(path): not exported: its content file is missing or damaged", as: .damaged)
        case .foreign:
            report("\(path): not exported: a file that no export wrote has its name", as: .foreign)
        }
    }

    struct Losses {
        fileprivate(set) var counts: [Loss: Int] = [:]

        var isEmpty: Bool { counts.isEmpty }

        var text: String {
            Loss.allCases.compactMap { loss in counts[loss].map { "\($0) \(loss.rawValue)" } }
                .joined(separator: ", ")
        }

        func hint(for layout: ExportLayout) -> String? {
            if counts[.missing] != nil {
                return
                    "`prefetch run` over the same lists downloads them; `prefetch failed list` has "
                    + "the others"
            }
            if counts[.damaged] != nil {
                return "`prefetch verify --repair`, then the next run downloads them again"
            }
            if counts[.collision] != nil {
                if layout.takesIdentifiers {
                    return "--identifier makes the names of an app's variants differ"
                }
                return layout.isForPages || layout == .workbox
                    ? "--layout pattern --name '{n}-{sha256:8}.{ext}' makes all names differ"
                    : "\(layout.rawValue) has one image for a URL: list it once, with one key"
            }
            if counts[.unsafe] != nil {
                return "--layout pattern --name '{host}/{sha256:16}.{ext}' takes no name of a URL"
            }
            return nil
        }

        var object: JSONObject {
            var object = JSONObject()
            for loss in Loss.allCases { object.add(loss.rawValue, counts[loss] ?? 0) }
            return object
        }
    }
}

/// An entry's image, or the reason for its absence.
enum ExportFinding: Sendable {
    case image(
        ExportedImage, path: Result<String, NamingProblem>, place: String?, isStale: Bool)
    case none(MissingEntry, message: String, ExportCollection.Loss)
    /// An image in a format that readers of data sets do not decode.
    case undecoded(MissingEntry, ImageFormat)
}

/// An entry of a list, or a stored image.
private struct ExportEntry {
    let number: Int
    let key: String
    let url: String
    let normalizedURL: String
    /// The list and the line of an entry.
    let place: String?
    let extras: EntryExtras?
    /// The reason why no image is found.
    var absence = "not in the cache"
}

/// Finds images in the cache, by a connection of its own.
private struct ExportFinder: Sendable {
    let catalog: CacheCatalog
    let choices: [(name: String, choice: VariantChoice)]
    let runs: VariantSet?
    /// A plan without images, which names them.
    let names: ExportPlan
    let rules: ExportRules
    let now: Timestamp

    func images(of batch: EntryBatch, after count: Int) throws(StorageError) -> [ExportFinding] {
        let keys = batch.records.map { String(decoding: batch.text[$0.key], as: UTF8.self) }
        var findings: [ExportFinding] = []
        findings.reserveCapacity(keys.count * choices.count)
        var number = count
        for (record, found) in zip(batch.records, try catalog.variants(ofKeys: keys)) {
            number += 1
            let place = "\(batch.manifest):\(record.line)"
            guard record.problem < 0 else {
                let problem = batch.problems[record.problem]
                let url = String(decoding: batch.text[record.url], as: UTF8.self)
                var entry = MissingEntry(
                    number: number, url: url == EntryBatch.missingURL ? nil : url,
                    reason: problem.failure.reason.rawValue)
                entry.columns = problem.columns
                findings.append(
                    .none(entry, message: "\(place): \(problem.failure.message)", .invalid))
                continue
            }
            let url = batch.url(of: record).withoutCredentials.text
            var found = found
            let absence = batch.absence(
                of: record, key: keys[number - count - 1], at: found.first?.resource.urls)
            if absence != nil { found = [] }
            if found.isEmpty, let key = try catalog.key(ofURL: url) {
                found = try catalog.variants(of: key)
            }
            let extras = batch.extras(of: record)
            var entry = ExportEntry(
                number: number, key: keys[number - count - 1], url: extras?.spelling ?? url,
                normalizedURL: url, place: place, extras: extras)
            if let absence { entry.absence = absence }
            try add(found, entry, to: &findings)
        }
        return findings
    }

    /// The chosen variants of a stored image.
    func images(of variants: [CacheCatalog.Item], number: Int) throws(StorageError)
        -> [ExportFinding]
    {
        guard let resource = variants.first?.resource else { return [] }
        var findings: [ExportFinding] = []
        let entry = ExportEntry(
            number: number, key: resource.key, url: resource.listedURL,
            normalizedURL: resource.listedURL, place: nil, extras: nil)
        try add(variants, entry, to: &findings)
        return findings
    }

    private func add(
        _ variants: [CacheCatalog.Item], _ entry: ExportEntry, to findings: inout [ExportFinding]
    ) throws(StorageError) {
        // An image without any variant is missing once.
        for (name, choice) in variants.isEmpty ? choices.prefix(1) : choices[...] {
            let item: CacheCatalog.Item?
            var reason = entry.absence
            do throws(UserError) {
                item = try choice.chosen(of: variants, by: entry.extras, in: runs)
            } catch {
                item = nil
                reason = error.message
            }
            guard let item else {
                // Without a list, images that lack the variant are not expected.
                if let place = entry.place {
                    findings.append(
                        .none(
                            try missing(entry),
                            message: "\(place): \(RedactedURL(entry.url)): not exported: \(reason)",
                            .missing))
                }
                continue
            }
            let image = try image(of: item, as: name, entry)
            guard item.image.isDecoded || !rules.layout.isDataSet else {
                let format = item.image.format
                let missing = MissingEntry(
                    image, reason: "not decoded: \(format.rawValue)", isUnusable: true)
                findings.append(.undecoded(missing, format))
                continue
            }
            let path = Result { () throws(NamingProblem) in try names.path(of: image) }
            findings.append(
                .image(
                    image, path: path, place: entry.place, isStale: item.standing(at: now) != .fresh
                ))
        }
    }

    /// An entry without an image, with the reason of the last run's failure for a layout that has
    /// it.
    private func missing(_ entry: ExportEntry) throws(StorageError) -> MissingEntry {
        var missing = MissingEntry(number: entry.number, url: entry.url, reason: entry.absence)
        guard rules.layout.describesFailures else { return missing }
        missing.columns = entry.extras?.columns
        missing.attributes = entry.extras?.attributes ?? []
        var failure = try catalog.failure(of: entry.key)
        if failure?.url != entry.normalizedURL {
            failure = try catalog.failure(ofURL: entry.normalizedURL)
        }
        if let failure {
            missing.reason = failure.cause
            missing.isUnusable = failure.reason.isAboutImage
        }
        return missing
    }

    private func image(
        of item: CacheCatalog.Item, as name: String, _ entry: ExportEntry
    ) throws(StorageError) -> ExportedImage {
        var image = ExportedImage(
            item, as: name, number: entry.number, url: entry.url,
            normalizedURL: entry.normalizedURL)
        image.columns = entry.extras?.columns
        if rules.layout.needsSources { image.source = try catalog.source(of: item.resource) }
        if rules.layout.isDataSet || rules.isDescribed || rules.pattern?.needsAttributes == true {
            let listed = entry.extras?.attributes ?? []
            let names = Set(listed.map(\.name))
            let stored = try catalog.attributes(of: item.resource)
            let isOwn = { (name: String) in name.hasPrefix(EntryAttribute.reservedPrefix) }
            image.attributes =
                listed + stored.filter { !names.contains($0.name) && !isOwn($0.name) }
            image.ownAttributes = stored.filter { isOwn($0.name) }
        }
        return image
    }
}

extension ExportCommand {
    /// Plans the images of the lists, or all images.
    func collectImages(
        from catalog: CacheCatalog, _ configured: ConfiguredLists,
        without damaged: Set<ContentDigest>,
        at now: Timestamp
    ) throws -> ExportCollection {
        var rules = try options.rules
        rules.isDescribed = maps.describesImages
        var collection = ExportCollection(plan: ExportPlan(rules, at: now), without: damaged)
        let choices = try choices(from: catalog)
        let names = collection.plan
        // The rows of all images are streamed, so their details need another connection.
        let finders = try (0..<(allLists.isEmpty ? 1 : AvailableProcessors.count)).map { _ in
            ExportFinder(
                catalog: try CacheCatalog(directory: catalog.directory), choices: choices,
                runs: choices[0].choice.variantsOfRuns, names: names, rules: rules, now: now)
        }
        if allLists.isEmpty {
            try addAll(catalog, to: &collection, finders[0])
        } else {
            try addListed(configured, to: &collection, finders)
        }
        return collection
    }

    private func choices(
        from catalog: CacheCatalog
    ) throws -> [(name: String, choice: VariantChoice)] {
        let noted = try catalog.variantNames()
        let names = options.variant.isEmpty ? [VariantName.main.text] : options.variant
        return try names.map { name in
            guard name == VariantName.main.text || noted.contains(where: { $0.name == name }) else {
                throw VariantChoice.unknown(name, noted)
            }
            return (name, .name(name, noted: noted))
        }
    }

    private func addAll(
        _ catalog: CacheCatalog, to collection: inout ExportCollection, _ finder: ExportFinder
    ) throws {
        var group: [CacheCatalog.Item] = []
        var number = 0
        func addGroup() throws {
            number += group.isEmpty ? 0 : 1
            for finding in try finder.images(of: group, number: number) { collection.add(finding) }
            group = []
        }
        try catalog.forEachVariant { item in
            if group.first?.resource.key != item.resource.key { try addGroup() }
            group.append(item)
        }
        try addGroup()
    }

    private func addListed(
        _ configured: ConfiguredLists, to collection: inout ExportCollection,
        _ finders: [ExportFinder]
    ) throws {
        var options = input.manifestOptions(variants: finders[0].runs, keepsColumns: true)
        options.keepsSpelling = true
        var entries = try ManifestSequence(
            arguments: lists, lists: listURLs.lists, options: options, configured: configured,
            copiesIn: cache,
            isQuiet: quiet, allowsEmptyLists: tree.allowsEmpty)
        var count = 0
        while true {
            // A batch for each thread.
            var work: [(finder: ExportFinder, batch: EntryBatch, count: Int)] = []
            while work.count < finders.count, let batch = try entries.nextBatch() {
                work.append((finders[work.count], batch, count))
                count += batch.records.count
            }
            if work.isEmpty {
                if !tree.allowsPartialLists { collection.gap = entries.gap }
                return
            }
            let found = work.parallelMap(workers: work.count, name: "look-up") { work in
                Result { () throws(StorageError) in
                    try work.finder.images(of: work.batch, after: work.count)
                }
            }
            for findings in found {
                for finding in try findings.get() { collection.add(finding) }
            }
        }
    }
}
