import CacheStorage
import EntryLifecycle
import EntryQueue
import HTTPSemantics
import Hashing
import PrefetchModel

/// The state of one record of a batch in the cache.
///
/// A batch has them in one array, without a reference in any: a list of a million fresh images
/// makes a million of them.
struct EntryFinding: Sendable {
    let fingerprint: KeyFingerprint
    var state: EntryState
    /// The stored resource of its key, by any recipe.
    var resource: Int64?
    /// The expiry by this run's rules, if it differs from the stored one without a request.
    var newExpiry: Timestamp?
    /// Whether the variants of a fresh entry differ from the ones that an earlier run used.
    var isReturning = false
    /// Whether a variant of a returning entry is superseded.
    var isSuperseded = false
    /// Whether its field `key` names an image by another URL than the last list.
    var hasNewURL = false
    /// Whether the stored image's key may not be its URL, so that the URLs are compared.
    var isKeyed = false
    /// Whether redirects may have led to the stored image.
    var isRedirected = false
    /// Whether the stored image of its key is another URL's, and so not its own.
    var hasOtherURL = false
    var failedBefore = false

    /// The failure that blacklists it, by its number in ``LookedUpBatch/blacklistedBy``.
    var blacklisting: Int? { if case .blacklisted(let number) = state { number } else { nil } }

    var mayFail: Bool {
        switch state {
        case .missing, .stale, .derivable, .seeded, .extended: true
        case .invalid, .fresh, .unannotated, .blacklisted: false
        }
    }

    /// Whether its stored images may be reported without another look-up: it is fresh, or excluded
    /// for a missing variant or a failure.
    var reportsImages: Bool {
        switch state {
        case .fresh, .unannotated, .stale(.incomplete), .blacklisted: !hasOtherURL
        case .invalid, .missing, .stale, .derivable, .seeded, .extended: false
        }
    }

    /// Returns the reason that it needs a request, by the wall clock; nil if it needs none.
    func cause(at now: Timestamp, _ variants: VariantSet) -> String? {
        switch state {
        case .missing:
            hasOtherURL ? "the image of its key has another URL" : "not in the cache"
        case .stale(.incomplete(let position)):
            "variant \(variants[Int(position)].name) is not in the cache"
        case .stale(.expired(let expiresAt)):
            expiresAt == Freshness.alwaysStale
                ? "to be validated at every use"
                : expiresAt <= now ? "expired at \(expiresAt)" : "stale by this run's rules"
        case .stale(.otherSource): "made from another file than sha256= names"
        case .stale(.changedFile): "its file has changed"
        case .stale(.original): "its original is not fresh"
        case .invalid, .fresh, .unannotated, .derivable, .seeded, .extended, .blacklisted: nil
        }
    }
}

struct LookedUpBatch: Sendable {
    let batch: EntryBatch
    var findings: [EntryFinding] = []
    var images = ReportedImages()
    /// The report lines of fresh entries; nil when the readers do not write them.
    var lines: WarmLines?
    var blacklistedBy: [FailureRecord] = []
    /// Why stored images are not selected, by number: redirects led, or would lead, to excluded
    /// URLs.
    var objections: [Int: Failure] = [:]
    /// The URLs of the stored images of entries with ``EntryFinding/hasOtherURL``.
    var otherURLs: [Int: String] = [:]
    /// Stored resources of entries that the run does not take: of other shards, or not selected.
    var resourcesNotTaken: [Int64] = []

    func blacklisting(of number: Int) -> FailureRecord? {
        findings[number].blacklisting.map { blacklistedBy[$0] }
    }

    /// Adds the stored resources that the batch lists.
    func noteListed(in listed: inout ResourceSet) {
        for resource in resourcesNotTaken { listed.insert(resource) }
        for finding in findings {
            if let resource = finding.resource { listed.insert(resource) }
        }
    }

    func hasLine(_ number: Int) -> Bool { lines?.has(number) == true }

    func extras(of number: Int) -> EntryExtras? { batch.extras(of: batch.records[number]) }

    func key(of number: Int) -> String {
        String(decoding: batch.text[batch.records[number].key], as: UTF8.self)
    }

    /// The fresh entries without other work and without variants of their own.
    var warm: [WarmEntry] {
        findings.indices.compactMap { number in
            guard case .fresh(let expiresAt) = findings[number].state,
                let found = images.ofRun(number)
            else { return nil }
            return WarmEntry(
                number: number, image: found.first ?? nil,
                variantImages: found.count > 1 ? found : [], expiresAt: expiresAt)
        }
    }
}

extension LookedUpBatch {
    init(nothingKnownOf batch: EntryBatch) {
        self.init(batch: batch)
        findings = zip(batch.records, batch.fingerprints(by: SHA256Hasher())).map {
            EntryFinding(fingerprint: $1, state: $0.problem < 0 ? .missing : .invalid)
        }
    }
}

/// The images of a batch's entries that may be reported without a request, by position of the
/// entry's variants; empty when the observer does not want them.
struct ReportedImages: Sendable {
    /// The images of the run's variants, ``each`` for every record.
    private var all: [StoredImage?] = []
    private var each = 1
    private var own: [Int: [StoredImage?]] = [:]

    init() {}

    init(records: Int, each: Int) {
        self.each = each
        all = [StoredImage?](repeating: nil, count: records * each)
    }

    mutating func set(_ image: StoredImage?, of number: Int, at position: Int) {
        all[number * each + position] = image
    }

    mutating func setOwn(_ images: [StoredImage?], of number: Int) { own[number] = images }

    /// The images of the run's variants; nil for a record with other ones.
    func ofRun(_ number: Int) -> ArraySlice<StoredImage?>? {
        guard own[number] == nil else { return nil }
        return all.isEmpty ? [] : all[(number * each)..<((number + 1) * each)]
    }

    subscript(number: Int) -> [StoredImage?] { own[number] ?? ofRun(number).map(Array.init) ?? [] }
}

extension EntryBatch {
    func fingerprints(by hasher: borrowing SHA256Hasher) -> [KeyFingerprint] {
        text.withUnsafeBytes { text in
            records.map { record in
                KeyFingerprint(UnsafeRawBufferPointer(rebasing: text[record.key]), hasher: hasher)
            }
        }
    }
}

/// An entry with its text still in the batch; strings are made only where they are needed.
struct RawEntry {
    let manifest: String
    let record: EntryBatch.Record
    let fingerprint: KeyFingerprint
    let extras: EntryExtras?
    let text: UnsafeRawBufferPointer
    var variantSet: UInt32 = 0
    var variantsOfKey: UInt32 = 0
    /// The stored images, by position of the variant, of an entry that is reported without further
    /// work.
    var images: [StoredImage?] = []

    var url: String { text.string(record.url) }
    var key: String { text.string(record.key) }

    /// A mark that distinguishes its request from others of its key: 0 for the request of its key,
    /// otherwise a hash.
    var requestMark: UInt32 {
        let headers = extras?.headers ?? []
        let digest = extras?.sourceDigest
        let credentials = record.ignoresQuery ? RequestURL(normalized: url).credentials : nil
        if headers.isEmpty, digest == nil,
            record.ignoresQuery ? credentials == nil : isKeyItsURL
        {
            return 0
        }
        var hasher = Hasher()
        let request = record.ignoresQuery ? record.key : record.url
        hasher.combine(bytes: UnsafeRawBufferPointer(rebasing: text[request]))
        for (name, value) in headers.map({ ($0.name.lowercased(), $0.value) }).sorted(by: <) {
            hasher.combine(name)
            hasher.combine(value)
        }
        hasher.combine(digest)
        hasher.combine(credentials)
        return UInt32(truncatingIfNeeded: hasher.finalize()) | 1
    }

    private var isKeyItsURL: Bool {
        record.key == record.url || text[record.key].elementsEqual(text[record.url])
    }

    func entry(_ state: EntryState, resource: Int64?, at now: ContinuousClock.Instant) -> Entry {
        let url = RequestURL(normalized: url)
        return Entry(
            manifest: manifest, line: record.line, url: url,
            // One string for both where they are equal, which is nearly always.
            key: record.key == record.url ? url.text : key, priority: record.priority,
            state: state, resource: resource, extras: extras?.withoutVariants,
            variantSet: variantSet, queuedAt: now)
    }
}

extension UnsafeRawBufferPointer {
    func string(_ range: Range<Int>) -> String { String(decoding: self[range], as: UTF8.self) }
}
