package import PrefetchModel

/// Writes the report of a run: JSON Lines, UTF-8, one object per line.
///
/// One line per entry, in the order in which entries end:
///
/// - `type`: `"result"`.
/// - `manifest`: text, as the user named it, `-` for standard input. `line`: from 1.
/// - `url`, `key`: text, as ``RedactedURL`` shows them, since reports are kept and passed on: user
///   information and signed parameters are masked. A key with a signed parameter therefore can't be
///   looked up from the report; every other key can.
/// - `outcome`: a name of ``Outcome``.
/// - `reason`: a name of ``FailureReason``, or null; for a `blacklisted` entry, the reason of the
///   failure that blacklisted it. `message`: text or null, URLs in it redacted.
/// - `http_status`: number or null. `attempts`: number, 0 without a turn. `start`: position of
///   the entry's first turn in the run, from 1, or null.
/// - `bytes_received`: number. `bytes_stored`: number or null.
/// - `format`, `width`, `height` (pixels), `sha256` (hexadecimal), `path` (relative to the cache
///   directory, or absolute on request) of the stored image; all null without one. `width` and
///   `height` are also null if unknown.
/// - `decoded`: Boolean, false if the image's format is stored without decoding it; null without a
///   stored image.
/// - `colour`: a name of ``ColourTreatment``. Only for an image encoded in this run.
/// - `expires_at`: RFC 3339, UTC, or null; null also for an image to validate at every use.
/// - `queue_ms`, `transfer_ms`, `decode_ms`, `encode_ms`: milliseconds with three decimals, null
///   for a stage that was not reached.
/// - `final_url`: the URL after redirects, redacted like `url`. `content_type`: the last response's
///   field, unchanged. `redirects`: number followed. All describe requests of this run. All are
///   null without a request; the first two also without redirects and without the field.
/// - `ttfb_ms`: milliseconds with three decimals from the last sent request to the first byte of
///   its response. `protocol`: a name of ``HTTPVersion``. `connection_reused`: Boolean. Only for an
///   entry with a response.
/// - `blacklisted_until`: RFC 3339, UTC, for a `blacklisted` entry, else null.
/// - `thumbhash`: Base64. `color`: `#rrggbb`, null if the image is fully transparent. Only for an
///   entry that got a placeholder in this run.
/// - `warning`: text. Only for an image that was stored in this run despite a fault of its file
///   that loses no pixel.
/// - `ended_ms`: milliseconds from the run's start to the end of the entry. Only for an entry with
///   an attempt.
/// - `replaced`: an object with `fetched_at`, `sha256`, `format`, `bytes` and `thumbhash` (or null)
///   of the stored image that a download with other bytes has replaced. Only for such an entry.
/// - `variants`, only for an entry with other variants than `main` alone: an array with one object
///   per variant, in the run's order, `main` first. Its members are `name`, `recipe`, `outcome` and
///   `reason` as above, and `format`, `decoded`, `width`, `height`, `bytes`, `sha256` and `path` of
///   its stored image, all null without one. The line's own image members are those of the first
///   variant.
///
/// The last line is the summary, see ``JSONObject/init(_:)``. All members but `colour`,
/// `ttfb_ms`, `protocol`, `connection_reused`, `thumbhash`, `color`, `warning`, `ended_ms`,
/// `replaced` and `variants` are always present. A report without a summary belongs to a run that
/// was killed, or whose report could not be written.
package struct ReportWriter: ~Copyable, Sendable {
    private static let bufferBytes = 64 << 10

    private var file: OutputFile
    private var json = JSONObjectWriter()
    private var failure: ReportingError?
    /// The prefix of `path`; empty for paths relative to the cache directory.
    let pathPrefix: String

    /// - Parameters:
    ///   - path: created or emptied; `-` is standard output.
    ///   - directory: the cache directory, for absolute paths; nil for relative paths.
    /// - Throws: ``ReportingError`` if the file can't be opened.
    package init(path: String, pathsIn directory: String? = nil) throws(ReportingError) {
        self.init(try OutputFile(path: path), pathsIn: directory)
    }

    package init(_ file: consuming OutputFile, pathsIn directory: String? = nil) {
        self.file = file
        pathPrefix = directory.map { $0.hasSuffix("/") ? $0 : $0 + "/" } ?? ""
        json.reserveCapacity(ReportWriter.bufferBytes + 4096)
    }

    package var isStandardOutput: Bool { file.isStandardOutput }
    /// The name in messages.
    package var name: String { file.name }

    /// The first error of writing; after it nothing is written, and each call throws it again.
    package var firstError: ReportingError? { failure }

    /// Appends a line. The file is written in blocks of 64 KiB, and by ``finish(_:)``.
    package mutating func write(_ result: EntryResult) throws(ReportingError) {
        if let failure { throw failure }
        json.append(result, pathPrefix: pathPrefix)
        if json.bytes.count >= ReportWriter.bufferBytes { try flush() }
    }

    /// Appends complete lines of ``WarmLineWriter``, large blocks without copying them.
    package mutating func write(lines: ArraySlice<UInt8>) throws(ReportingError) {
        if let failure { throw failure }
        guard lines.count >= ReportWriter.bufferBytes else {
            json.append(lines: lines)
            if json.bytes.count >= ReportWriter.bufferBytes { try flush() }
            return
        }
        try flush()
        do {
            try file.write(lines)
        } catch {
            failure = error
            throw error
        }
    }

    /// Writes the buffered lines and the summary as the last line, and closes the file. It
    /// is on the disk then.
    package mutating func finish(_ summary: RunSummary) throws(ReportingError) {
        if let failure { throw failure }
        json.beginObject()
        json.appendMembers(of: summary)
        json.endObject()
        json.endLine()
        try flush()
        do {
            try file.synchronize()
            try file.close()
        } catch {
            failure = error
            throw error
        }
    }

    private mutating func flush() throws(ReportingError) {
        defer { json.removeAll() }
        do {
            try file.write(json.bytes)
        } catch {
            failure = error
            throw error
        }
    }
}

extension JSONObjectWriter {
    /// Appends a line. ``WarmLineWriter`` writes most lines of warm entries; it knows the members
    /// that differ between them.
    mutating func append(_ result: EntryResult, pathPrefix: String) {
        beginObject()
        string("type", "result")
        string("manifest", result.manifest)
        integer("line", result.line)
        string("url", result.shownURL)
        string("key", result.shownKey)
        string("outcome", result.outcome.rawValue)
        string("reason", result.reason?.rawValue)
        string("message", result.message.map(redacted))
        integer("http_status", result.httpStatus)
        integer("attempts", result.attempts)
        integer("start", result.start)
        integer("bytes_received", result.bytesReceived)
        integer("bytes_stored", result.stored?.size.bytes)
        string("format", result.stored?.format.rawValue)
        boolean("decoded", result.stored?.isDecoded)
        appendSize(of: result.stored)
        string("sha256", result.stored?.digest.description)
        string("path", result.stored.map { pathPrefix + $0.relativePath })
        append(result.stored?.colour)
        // The cache stores 0 for an image to validate at every use.
        string(
            "expires_at",
            result.expiresAt.flatMap { $0.milliseconds == 0 ? nil : $0.description })
        milliseconds("queue_ms", result.stages.queue)
        milliseconds("transfer_ms", result.stages.transfer)
        milliseconds("decode_ms", result.stages.decode)
        milliseconds("encode_ms", result.stages.encode)
        string("final_url", result.exchange?.finalURL.map { RedactedURL($0).description })
        string("content_type", result.exchange?.contentType)
        integer("redirects", result.exchange?.redirects)
        if let connection = result.exchange?.connection {
            milliseconds("ttfb_ms", connection.timeToFirstByte)
            string("protocol", connection.version.rawValue)
            boolean("connection_reused", connection.isReused)
            if !connection.address.isEmpty { string("address", connection.address) }
            if let setup = connection.setup {
                milliseconds("dns_ms", setup.nameLookup)
                milliseconds("connect_ms", setup.connecting)
                if let handshake = setup.handshake { milliseconds("tls_ms", handshake) }
            }
        }
        if let status = result.exchange?.cacheStatus {
            if let age = status.age { integer("age", age) }
            if let text = status.text { string("x_cache", text) }
        }
        string("blacklisted_until", result.blacklistedUntil?.description)
        if let placeholder = result.placeholder {
            string("thumbhash", placeholder.thumbHashText)
            string("color", placeholder.colourText)
        }
        if let warning = result.warning { string("warning", warning) }
        if let time = result.endedAfter { milliseconds("ended_ms", time) }
        if let replaced = result.replaced { append(replaced) }
        if !result.variants.isEmpty { append(result.variants, pathPrefix: pathPrefix) }
        if let columns = result.columns { object("columns", columns) }
        endObject()
        endLine()
    }

    private mutating func appendSize(of image: StoredImage?) {
        integer("width", image?.knownWidth)
        integer("height", image?.knownHeight)
        if let orientation = image?.remainingOrientation { integer("orientation", orientation) }
    }

    private mutating func append(_ colour: ColourTreatment?) {
        if let colour { string("colour", colour.rawValue) }
    }

    private mutating func append(_ replaced: ReplacedImage) {
        beginObject(named: "replaced")
        string("fetched_at", replaced.fetchedAt.description)
        string("sha256", replaced.image.digest.description)
        string("format", replaced.image.format.rawValue)
        integer("bytes", replaced.image.size.bytes)
        string(
            "thumbhash",
            replaced.thumbHash.map { String(decoding: $0.base64, as: UTF8.self) })
        endObject()
    }

    private mutating func append(_ variants: [VariantResult], pathPrefix: String) {
        beginArray(named: "variants")
        for result in variants {
            beginObject()
            string("name", result.variant.name.text)
            string("recipe", result.variant.recipeText)
            string("outcome", result.outcome.rawValue)
            string("reason", result.reason?.rawValue)
            string("format", result.stored?.format.rawValue)
            boolean("decoded", result.stored?.isDecoded)
            appendSize(of: result.stored)
            integer("bytes", result.stored?.size.bytes)
            string("sha256", result.stored?.digest.description)
            string("path", result.stored.map { pathPrefix + $0.relativePath })
            append(result.stored?.colour)
            endObject()
        }
        endArray()
    }
}
