import CacheStorage
import Exporting
import Manifests
import Pipeline
import PrefetchModel
import Reporting
import Upkeep

/// The images to export, and those that cannot be.
struct ExportCollection {
    enum Loss: String, CaseIterable {
        case missing
        case invalid
        case collision
        case unnamed
        case damaged
        case foreign
    }

    var plan: ExportPlan
    /// The number of stale images among the exported.
    var stale = 0
    private(set) var losses = Losses()
    private var printed = 0

    private static let mostPrinted = 20

    init(plan: ExportPlan) { self.plan = plan }

    /// Prints the reason of a loss, and counts it.
    mutating func report(_ message: String, as loss: Loss) {
        losses.counts[loss, default: 0] += 1
        printed += 1
        if printed <= ExportCollection.mostPrinted {
            StandardError.write("prefetch: \(message)")
        } else if printed == ExportCollection.mostPrinted + 1 {
            StandardError.write("prefetch: … the other images are only counted")
        }
    }

    mutating func report(_ path: String, _ problem: Exporter.Problem) {
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

        var hint: String? {
            if counts[.missing] != nil {
                return "`prefetch run` over the same lists downloads them"
            }
            if counts[.damaged] != nil {
                return "`prefetch verify --repair`, then the next run downloads them again"
            }
            if counts[.collision] != nil {
                return "--name with {n} or {sha256:8} makes names differ"
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

extension ExportCommand {
    /// Plans the images of the lists, or all images.
    ///
    /// - Throws: ``CommandFailure`` for a cache or list that cannot be read.
    func collectImages(
        from catalog: CacheCatalog, at now: Timestamp
    ) throws -> ExportCollection {
        let rules = try options.rules
        var collection = ExportCollection(plan: ExportPlan(rules, at: now))
        let choices = try choices(from: catalog)
        do {
            if lists.isEmpty {
                // The rows of all images are streamed, and details need a connection of their own.
                let details = ExportDetails(
                    try CacheCatalog(directory: catalog.directory), rules)
                try addAll(catalog, to: &collection, choices, details, at: now)
            } else {
                try addListed(
                    to: &collection, choices, ExportDetails(catalog, rules), at: now)
            }
        } catch let error as StorageError {
            throw CommandFailure(error)
        }
        return collection
    }

    private func choices(from catalog: CacheCatalog) throws -> [(name: String, VariantChoice)] {
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
        _ catalog: CacheCatalog, to collection: inout ExportCollection,
        _ choices: [(name: String, VariantChoice)], _ details: ExportDetails, at now: Timestamp
    ) throws {
        var group: [CacheCatalog.Item] = []
        var number = 0
        func addGroup() throws {
            guard let resource = group.first?.resource else { return }
            number += 1
            let entry = ExportEntry(
                number: number, url: resource.listedURL, normalizedURL: resource.listedURL,
                place: nil, extras: nil)
            try add(group, entry, to: &collection, choices, in: nil, details, at: now)
            group = []
        }
        try catalog.forEachVariant { item in
            if group.first?.resource.key != item.resource.key { try addGroup() }
            group.append(item)
        }
        try addGroup()
    }

    private func addListed(
        to collection: inout ExportCollection, _ choices: [(name: String, VariantChoice)],
        _ details: ExportDetails, at now: Timestamp
    ) throws {
        let catalog = details.catalog
        let runs = choices[0].1.variantsOfRuns
        var options = try input.manifestOptions(variants: runs, keepsColumns: true)
        options.keepsSpelling = true
        options.followsIndexes = true
        var entries = try ManifestSequence(arguments: lists, options: options)
        if !quiet { entries.findingList = ManifestSequence.tellOfCopy }
        try entries.open(by: StoredLists(try cache.existingDirectory()))
        var number = 0
        while let batch = try entries.nextBatchOfCommand() {
            let keys = batch.records.map { String(decoding: batch.text[$0.key], as: UTF8.self) }
            for (record, found) in zip(batch.records, try catalog.variants(ofKeys: keys)) {
                number += 1
                let place = "\(batch.manifest):\(record.line)"
                guard record.problem < 0 else {
                    let message = batch.problems[record.problem].failure.message
                    collection.plan.addMissing(number)
                    collection.report("\(place): \(message)", as: .invalid)
                    continue
                }
                let url = batch.url(of: record).withoutCredentials.text
                var found = found
                if found.isEmpty, let key = try catalog.key(ofURL: url) {
                    found = try catalog.variants(of: key)
                }
                let extras = batch.extras(of: record)
                let entry = ExportEntry(
                    number: number, url: extras?.spelling ?? url, normalizedURL: url, place: place,
                    extras: extras)
                try add(found, entry, to: &collection, choices, in: runs, details, at: now)
            }
        }
    }

    /// Plans the chosen variants of an image.
    private func add(
        _ variants: [CacheCatalog.Item], _ entry: ExportEntry,
        to collection: inout ExportCollection, _ choices: [(name: String, VariantChoice)],
        in runs: VariantSet?, _ details: ExportDetails, at now: Timestamp
    ) throws {
        for (name, choice) in choices {
            let item: CacheCatalog.Item?
            var reason = "not in the cache"
            do throws(GetCommand.Refusal) {
                item = try choice.chosen(of: variants, by: entry.extras, in: runs)
            } catch {
                item = nil
                reason = error.message
            }
            guard let item else {
                // Of all images, those that have the variant are meant.
                if entry.place != nil || variants.isEmpty {
                    collection.plan.addMissing(entry.number)
                    collection.report("\(entry.shown): not exported: \(reason)", as: .missing)
                }
                continue
            }
            let image = try details.image(of: item, as: name, entry)
            switch collection.plan.add(image) {
            case .planned:
                if item.standing(at: now) != .fresh { collection.stale += 1 }
            case .unnamed(let problem):
                collection.report(
                    "\(entry.shown): not exported: \(problem.message)", as: .unnamed)
            case .collision(let other, let path):
                collection.report(
                    "\(entry.shown): not exported: \(path) is the file of "
                        + "\(RedactedURL(other.url))", as: .collision)
            }
        }
    }
}

/// An entry of a list, or a stored image.
private struct ExportEntry {
    let number: Int
    let url: String
    let normalizedURL: String
    /// `list:line`; nil without a list.
    let place: String?
    let extras: EntryExtras?

    var shown: String { (place.map { $0 + ": " } ?? "") + "\(RedactedURL(url))" }
}

/// Reads the details that a layout needs.
private struct ExportDetails {
    let catalog: CacheCatalog
    private let needsSources: Bool
    private let needsAttributes: Bool

    init(_ catalog: CacheCatalog, _ rules: ExportRules) {
        self.catalog = catalog
        needsSources = rules.layout.needsSources
        needsAttributes = rules.layout.describesImages || rules.pattern?.needsAttributes == true
    }

    func image(
        of item: CacheCatalog.Item, as name: String, _ entry: ExportEntry
    ) throws(StorageError) -> ExportedImage {
        var attributes: [EntryAttribute] = []
        if needsAttributes {
            let own = entry.extras?.attributes ?? []
            let names = Set(own.map(\.name))
            attributes =
                own
                + (try catalog.attributes(of: item.resource)).filter {
                    !names.contains($0.name) && !$0.name.hasPrefix("prefetch.")
                }
        }
        return ExportedImage(
            number: entry.number, url: entry.url, normalizedURL: entry.normalizedURL,
            key: item.resource.key, variant: name, stored: item.image, fetchedAt: item.fetchedAt,
            expiresAt: item.expiresAt, attributes: attributes, columns: entry.extras?.columns,
            source: needsSources ? try catalog.source(of: item.resource) : nil)
    }
}
