import CacheStorage
import Codecs
import EntryLifecycle
import PrefetchModel
import Scheduling
import Threading
import URLParsing

/// Looks up stored copies on a thread of its own, since the coordinator must not wait for the disk.
final class CopyStage: CopyFinding {
    private let lookups: CopyLookups
    private let thread: OwnedThread

    init(
        configuration: RunConfiguration, cache: OpenCache, seed: SeedCache?, mailbox: Mailbox
    ) throws {
        let lookups = CopyLookups(
            configuration: configuration, cache: cache, seed: seed, mailbox: mailbox)
        self.lookups = lookups
        thread = try OwnedThread(name: "copies") { lookups.work() }
    }

    func find(_ requests: [CopyRequest]) {
        lookups.state.updateForOne { $0.requests += requests }
    }

    func finish() {
        lookups.state.update { $0.isFinished = true }
        thread.join()
    }
}

/// The work of a ``CopyStage``, on its thread.
private struct CopyLookups: Sendable {
    struct Requests {
        var requests: [CopyRequest] = []
        var isFinished = false
    }

    let state = Monitor(Requests())
    let configuration: RunConfiguration
    let cache: OpenCache
    let seed: SeedCache?
    let mailbox: Mailbox

    /// Takes requests until ``CopyStage/finish()`` or an error, which is the last event.
    func work() {
        do {
            let reader = try CacheReader(cache.directory, varyTest: configuration.varyTest())
            let seedReader = seed.flatMap { seed in
                seed.reading { () throws(StorageError) in
                    try CacheCatalog(directory: seed.source.directory)
                }
            }
            while let requests = next() {
                mailbox.put(.found(try find(requests, with: reader, seedReader)))
            }
        } catch {
            mailbox.put(.lookupsFailed(error))
        }
    }

    private func next() -> [CopyRequest]? {
        state.wait { state, _ -> Monitor<Requests>.Decision<[CopyRequest]?> in
            guard state.requests.isEmpty else {
                defer { state.requests = [] }
                return .ready(state.requests)
            }
            return state.isFinished ? .ready(nil) : .wait(until: nil)
        }
    }

    private func find(
        _ requests: [CopyRequest], with reader: CacheReader, _ seedReader: CacheCatalog?
    ) throws(StorageError) -> [CopyFindings] {
        // All copies by one query, and all failures by another.
        let entries = requests.enumerated().compactMap {
            place, request -> (place: Int, entry: Entry, variants: VariantSet)? in
            guard case .entry(let entry, let variants, isAhead: _) = request.subject else {
                return nil
            }
            return (place, entry, variants)
        }
        let resources = try entries.map { _, entry, _ throws(StorageError) in
            entry.state.isFoundByKey
                ? try reader.resources(ofKeys: [entry.key]).first : entry.resource
        }
        let stored = zip(entries, resources).filter { $0.1 != nil }.map(\.0)
        let failed = entries.filter(\.entry.failedBefore)
        var found = [Findings](repeating: .nothing, count: requests.count)
        let copies = try reader.copies(of: resources.compactMap(\.self))
        for ((place, entry, variants), copy) in zip(stored, copies) {
            // A key may have another URL's image.
            guard let copy, entry.isImage(at: copy.validation.location) else { continue }
            found[place].copy = StoredCopy(copy, variants, in: cache.directory)
        }
        if let seedReader {
            let seeded = entries.filter(\.entry.state.isSeeded)
            let copies = seed?.reading { () throws(StorageError) in
                try seedReader.copies(
                    of: seeded.map { ($0.entry.key, $0.variants.map(\.recipeText)) })
            }
            for ((place, entry, _), copy) in zip(seeded, copies ?? []) {
                guard let copy, entry.isImage(at: copy.validation.location) else { continue }
                found[place].seeded = copy
            }
        }
        let failures = try reader.failures(ofKeys: failed.map(\.entry.key))
        for (entry, failure) in zip(failed, failures) {
            found[entry.place].formerFailure = failure?.reported
        }
        return try requests.indices.map { place throws(StorageError) in
            let request = requests[place]
            if let (host, cause) = request.trouble {
                found[place].wasGivenUpBefore = try reader.hostState(of: host)?.had(cause) == true
            }
            switch request.subject {
            case .entry(_, _, let isAhead):
                return CopyFindings(
                    token: request.token, found: .entry(found[place], isAhead: isAhead))
            case .stored(let recipe):
                let stored = try reader.stored(key: request.key, recipe: recipe)
                return CopyFindings(
                    token: request.token,
                    found: .stored(stored.map { ($0.image, $0.expiresAt) }))
            }
        }
    }
}

extension HostState {
    fileprivate func had(_ cause: HostPacing.GiveUpCause) -> Bool {
        switch cause {
        case .unreachable: failuresInARow > 0
        case .overloaded: isRefusing
        case .coolingDown: coolingUntil != nil
        }
    }
}

extension StoredCopy {
    fileprivate init(_ copy: CachedCopy, _ variants: VariantSet, in directory: CacheDirectory) {
        let wanted = Recipe.original(filteredBy: variants.primary.recipe.bodyFilter).canonicalText
        // Undecoded formats are stored as received, by any recipe.
        let original =
            copy[wanted]
            ?? copy.images.first {
                !$0.image.isDecoded && Recipe.haveSameFilter($0.recipe, wanted)
            }?.image
        self.init(
            resource: copy.resourceID, validation: copy.validation,
            permanentTarget: copy.validation.location.permanent.flatMap {
                RequestURL(remembered: $0.url)
            },
            sourceDigest: copy.sourceDigest, thumbHash: copy.thumbHash,
            kept: variants.map { variant -> Kept? in
                guard
                    let image = copy.image(
                        asBy: variant.recipeText, sameRules: CodecLibraries.sameRules),
                    // The bytes of a format that this build decodes may have been stored by one
                    // that did not.
                    image.isDecoded || !CodecLibraries.decodes(image.format),
                    directory.hasWholeFile(image)
                else { return nil }
                return (image, copy[variant.recipeText] == image)
            },
            original: original.map { ($0, directory.hasWholeFile($0)) },
            others: StoredCopy.others(copy, variants))
    }

    private static func others(_ copy: CachedCopy, _ variants: VariantSet) -> [RequestedVariant] {
        copy.names.compactMap { name, text in
            guard !variants.contains(where: { $0.name == name || $0.recipeText == text }) else {
                return nil
            }
            return Recipe(canonicalText: text).map { RequestedVariant(name: name, recipe: $0) }
        }
    }
}

extension RequestURL {
    /// Parses the stored target of permanent redirects, which may be in its origin's spelling. Nil
    /// when it cannot be requested.
    init?(remembered text: String) {
        do {
            self = try URLParser().parse(text.utf8).withoutCredentials
        } catch {
            return nil
        }
    }
}

struct CopyRequest: Sendable {
    enum Subject: Sendable {
        /// A manifest's entry with its variants. `isAhead`: whether its turn comes later.
        case entry(Entry, VariantSet, isAhead: Bool)
        /// The stored image of a key after the end of its first entry.
        case stored(Recipe)
    }

    /// Returned with the findings.
    let token: Int
    let key: String
    let subject: Subject
    /// A given-up host and the cause; nil without one.
    var trouble: (host: String, cause: HostPacing.GiveUpCause)?
}

struct CopyFindings: Sendable {
    enum CopyResult: Sendable {
        /// Without the kept part of a body, which is not looked up.
        case entry(Findings, isAhead: Bool)
        case stored((image: StoredImage, expiresAt: Timestamp)?)
    }

    let token: Int
    let found: CopyResult
}
