package import PrefetchModel

/// A line of the report, with the members of docs/report.md.
///
/// ``WarmLineWriter`` writes most lines of warm entries; it knows the members that differ.
extension EntryResult: JSONRecord {
    package struct ResultDraft {
        var result = EntryResult(manifest: "", line: 0, url: "", key: "", outcome: .failed)
        var image = ImageDraft()

        var whole: EntryResult {
            var result = result
            result.stored = image.image
            return result
        }
    }

    package static var emptyDraft: ResultDraft { ResultDraft() }

    package static let sample: EntryResult = {
        var sample = EntryResult(manifest: "", line: 1, url: "", key: "", outcome: .fresh)
        sample.placeholder = Placeholder(thumbHash: [], colour: nil)
        sample.endedAfter = .zero
        sample.replaced = .sample
        return sample
    }()

    package func visitMembers(_ members: inout some JSONVisitor, into draft: inout ResultDraft) {
        members.add("type", "result")
        members.add("manifest", manifest) { draft.result.manifest = $0 }
        members.add("line", line) { draft.result.line = $0 }
        // A key with a signed parameter cannot be looked up from the report; every other key can.
        members.add("url", shownURL) { draft.result.url = $0 }
        members.add("key", shownKey)
        members.choice("outcome", outcome) { draft.result.outcome = $0 }
        members.choice("reason", reason) { draft.result.reason = $0 }
        members.add("message", message.map(redacted)) { draft.result.message = $0 }
        members.add("http_status", httpStatus) { draft.result.httpStatus = $0 }
        members.add("attempts", attempts) { draft.result.attempts = $0 }
        members.add("start", start)
        members.add("bytes_received", bytesReceived) { draft.result.bytesReceived = $0 }
        members.add("bytes_stored", stored?.size.bytes) { draft.image.bytes = $0 }
        members.choice("format", stored?.format) { draft.image.format = $0 }
        members.add("decoded", stored?.isDecoded) { draft.image.isDecoded = $0 }
        stored.visitSize(&members, into: &draft.image)
        members.digest("sha256", stored?.digest) { draft.image.digest = $0 }
        members.path("path", stored?.relativePath)
        if let colour = stored?.colour { members.choice("colour", colour) }
        // The cache stores 0 for an image to validate at every use.
        members.add("expires_at", expiresAt.flatMap { $0.milliseconds == 0 ? nil : $0 })
        members.add("queue_ms", stages.queue)
        members.add("transfer_ms", stages.transfer) { draft.result.stages.transfer = $0 }
        members.add("decode_ms", stages.decode)
        members.add("encode_ms", stages.encode)
        exchange.visitMembers(&members)
        members.add("blacklisted_until", blacklistedUntil)
        if let placeholder {
            members.thumbHash("thumbhash", placeholder.thumbHash) {
                draft.result.placeholder = Placeholder(thumbHash: $0, colour: nil)
            }
            members.add("color", placeholder.colourText)
        }
        if let warning { members.add("warning", warning) }
        if let endedAfter {
            members.add("ended_ms", endedAfter) { draft.result.endedAfter = $0 }
        }
        if let replaced {
            members.record("replaced", replaced) { draft.result.replaced = $0.replaced }
        }
        if !variants.isEmpty { members.records("variants", variants) }
        if let columns { members.add("columns", RawJSON(columns)) }
    }
}

extension EntryResult.Exchange? {
    /// The requests of a run, which no page shows.
    fileprivate func visitMembers(_ members: inout some JSONVisitor) {
        members.add("final_url", self?.finalURL.map { RedactedURL($0).description })
        members.add("content_type", self?.contentType)
        members.add("redirects", self?.redirects)
        if let connection = self?.connection {
            members.add("ttfb_ms", connection.timeToFirstByte)
            members.choice("protocol", connection.version)
            members.add("connection_reused", connection.isReused)
            if !connection.address.isEmpty { members.add("address", connection.address) }
            if let setup = connection.setup {
                members.add("dns_ms", setup.nameLookup)
                members.add("connect_ms", setup.connecting)
                if let handshake = setup.handshake { members.add("tls_ms", handshake) }
            }
        }
        if let status = self?.cacheStatus {
            if let age = status.age { members.add("age", age) }
            if let text = status.text { members.add("x_cache", text) }
        }
    }
}

extension VariantResult: JSONRecord {
    package static var emptyDraft: ImageDraft { ImageDraft() }

    package static let sample = VariantResult(
        RequestedVariant(name: .main, recipe: Recipe()), outcome: .fresh, stored: .sample)

    package func visitMembers(_ members: inout some JSONVisitor, into draft: inout ImageDraft) {
        members.add("name", variant.name.text)
        members.add("recipe", variant.recipeText)
        members.choice("outcome", outcome)
        members.choice("reason", reason)
        members.choice("format", stored?.format) { draft.format = $0 }
        members.add("decoded", stored?.isDecoded) { draft.isDecoded = $0 }
        stored.visitSize(&members, into: &draft)
        members.add("bytes", stored?.size.bytes) { draft.bytes = $0 }
        members.digest("sha256", stored?.digest) { draft.digest = $0 }
        members.path("path", stored?.relativePath)
        if let colour = stored?.colour { members.choice("colour", colour) }
    }
}

extension ReplacedImage: JSONRecord {
    package struct ReplacedDraft {
        var fetchedAt: Timestamp?
        var image = ImageDraft()
        var thumbHash: [UInt8]?

        var replaced: ReplacedImage? {
            guard let fetchedAt, let image = image.image else { return nil }
            return ReplacedImage(fetchedAt: fetchedAt, image: image, thumbHash: thumbHash)
        }
    }

    package static var emptyDraft: ReplacedDraft { ReplacedDraft() }

    package static let sample = ReplacedImage(
        fetchedAt: Timestamp(seconds: 0), image: .sample, thumbHash: nil)

    package func visitMembers(_ members: inout some JSONVisitor, into draft: inout ReplacedDraft) {
        members.time("fetched_at", fetchedAt) { draft.fetchedAt = $0 }
        members.digest("sha256", image.digest) { draft.image.digest = $0 }
        members.choice("format", image.format) { draft.image.format = $0 }
        members.add("bytes", image.size.bytes) { draft.image.bytes = $0 }
        members.thumbHash("thumbhash", thumbHash) { draft.thumbHash = $0 }
    }
}

/// The members that describe a stored image, as they are read.
package struct ImageDraft {
    var bytes: Int?
    var format: ImageFormat?
    var width = 0
    var height = 0
    var digest: ContentDigest?
    var isDecoded = true

    var image: StoredImage? {
        guard let bytes, let format, let digest else { return nil }
        return StoredImage(
            digest: digest, format: format, isDecoded: isDecoded, widthInPixels: width,
            heightInPixels: height, size: ByteCount(bytes))
    }
}

extension StoredImage? {
    fileprivate func visitSize(
        _ members: inout some JSONVisitor, into draft: inout ImageDraft
    ) {
        members.add("width", self?.knownWidth) { draft.width = $0 }
        members.add("height", self?.knownHeight) { draft.height = $0 }
        if let orientation = self?.remainingOrientation {
            members.add("orientation", orientation)
        }
    }
}

extension StoredImage {
    static let sample = StoredImage(
        digest: .zero, format: .jpeg, widthInPixels: 1, heightInPixels: 1, orientation: 2,
        size: ByteCount(1), colour: .kept)
}
