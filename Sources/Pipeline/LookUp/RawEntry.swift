import CacheStorage
import EntryLifecycle
import EntryQueue
import Hashing
import PrefetchModel

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
