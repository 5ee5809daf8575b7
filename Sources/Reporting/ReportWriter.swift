package import PrefetchModel

/// Writes the report of a run: JSON Lines, UTF-8, one object a line.
///
/// A line for each entry, in the order in which entries end:
///
/// - `type`: `"result"`.
/// - `manifest`: text, as the user named it, `-` for standard input; `line`: from 1.
/// - `url`: text, `key`: text; both as ``RedactedURL`` shows them: user information and signed
///   parameters are masked, since reports are kept and passed on. A key that holds a signed
///   parameter therefore cannot be looked up from the report; every other one can.
/// - `outcome`: a name of ``Outcome``.
/// - `reason`: a name of ``FailureReason``, or null; of a `blacklisted` entry that of the failure
///   that blocks it. `message`: text or null, URLs in it redacted.
/// - `http_status`: number or null; `attempts`: number, 0 without a request; `start`: position of
///   the transfer's start in the run from 1, or null.
/// - `bytes_received`: number; `bytes_stored`: number or null.
/// - `format`, `width`, `height` (pixels), `sha256` (hexadecimal), `path` (relative to the cache
///   directory, or absolute where that is asked for): of the stored image, all null without one.
/// - `expires_at`: RFC 3339, UTC, or null, also for an image to be validated at every use.
/// - `queue_ms`, `transfer_ms`, `decode_ms`, `encode_ms`: milliseconds with three decimals, null
///   for a stage that was not reached.
/// - `final_url`: where redirects led, shown as `url` is; `content_type`: of the last response, as it
///   came; `redirects`: number followed. All describe the requests of this run and are null without
///   one; the first two also without redirects and without such a field.
/// - `blacklisted_until`: RFC 3339, UTC, of a `blacklisted` entry, else null.
/// - `thumbhash`: Base64, `color`: `#rrggbb`, null where all is transparent; only of an entry of which a
///   placeholder was made in this run.
/// - `variants`, only of an entry that asks for more or other than `main`: an array with an object for
///   each variant, in the order in which the run names them, `main` first. Its members are `name`,
///   `recipe`, `outcome` and `reason` as above, and `format`, `width`, `height`, `bytes`, `sha256` and
///   `path` of its stored image, all null without one. What the line itself says of a stored image is
///   that of the first variant.
///
/// The last line is the summary, see ``JSONObject/init(_:)``. All members but `thumbhash`, `color`
/// and `variants` are always present. A report without a summary is that of a run that was killed, or whose report could not be written.
package struct ReportWriter: ~Copyable, Sendable {
    private static let bufferBytes = 64 << 10

    private var file: OutputFile
    private var json = JSONObjectWriter()
    private var failure: ReportingError?
    /// What `path` begins with; empty for paths relative to the cache directory.
    let pathPrefix: String

    /// - Parameters:
    ///   - path: created or emptied; `-` is standard output.
    ///   - directory: the cache directory, to give every `path` as a path below it; nil for relative ones.
    /// - Throws: ``ReportingError`` when it cannot be opened.
    package init(path: String, pathsIn directory: String? = nil) throws(ReportingError) {
        self.init(try OutputFile(path: path), pathsIn: directory)
    }

    package init(_ file: consuming OutputFile, pathsIn directory: String? = nil) {
        self.file = file
        pathPrefix = directory.map { $0.hasSuffix("/") ? $0 : $0 + "/" } ?? ""
        json.reserveCapacity(ReportWriter.bufferBytes + 4096)
    }

    package var isStandardOutput: Bool { file.isStandardOutput }
    /// What messages call it.
    package var name: String { file.name }

    /// What made writing fail; nothing is written any more after that, and each call throws it.
    package var firstError: ReportingError? { failure }

    /// Appends a line; it reaches the file when 64 KiB are together, or with ``finish(_:)``.
    package mutating func write(_ result: EntryResult) throws(ReportingError) {
        if let failure { throw failure }
        json.append(result, pathPrefix: pathPrefix)
        if json.bytes.count >= ReportWriter.bufferBytes { try flush() }
    }

    /// Appends whole lines that ``WarmLineWriter`` has written; many go to the file at once.
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

    /// Writes the summary as the last line and all that is buffered, and closes the file.
    package mutating func finish(_ summary: RunSummary) throws(ReportingError) {
        if let failure { throw failure }
        json.beginObject()
        json.appendMembers(of: summary)
        json.endObject()
        json.endLine()
        try flush()
        do {
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
    /// A whole line. Those of warm entries are written by ``WarmLineWriter`` for the most part, which
    /// knows the members that differ from one of them to the next.
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
        integer("width", result.stored?.knownWidth)
        integer("height", result.stored?.knownHeight)
        string("sha256", result.stored?.digest.description)
        string("path", result.stored.map { pathPrefix + $0.relativePath })
        // 0 is what the cache keeps for images to be validated at every use, not a day in 1970.
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
        string("blacklisted_until", result.blacklistedUntil?.description)
        if let placeholder = result.placeholder {
            string("thumbhash", placeholder.thumbHashText)
            string("color", placeholder.colourText)
        }
        if !result.variants.isEmpty { append(result.variants, pathPrefix: pathPrefix) }
        endObject()
        endLine()
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
            integer("width", result.stored?.knownWidth)
            integer("height", result.stored?.knownHeight)
            integer("bytes", result.stored?.size.bytes)
            string("sha256", result.stored?.digest.description)
            string("path", result.stored.map { pathPrefix + $0.relativePath })
            endObject()
        }
        endArray()
    }

    /// See ``JSONObject/init(_:)``.
    mutating func appendMembers(of summary: RunSummary) {
        let counters = summary.counters
        string("type", "summary")
        integer("schema_version", 3)
        integer("entries", counters.entriesRead)
        beginObject(named: "outcomes")
        for outcome in Outcome.allCases { integer(.text(outcome.rawValue), counters[outcome]) }
        endObject()
        beginObject(named: "reasons")
        for reason in FailureReason.allCases where !reason.isExclusion {
            integer(.text(reason.rawValue), counters[reason])
        }
        endObject()
        beginObject(named: "exclusions")
        for reason in FailureReason.allCases where reason.isExclusion {
            integer(.text(reason.rawValue), counters[reason])
        }
        endObject()
        integer("known_failures", counters.knownFailures)
        integer("requests", counters.requests)
        integer("bytes_received", counters.bytesReceived)
        integer("bytes_stored", counters.bytesStored)
        integer("variants_made", counters.variantsMade)
        integer("not_decoded", counters.notDecoded)
        string("started_at", summary.startedAt.description)
        milliseconds("elapsed_ms", summary.elapsed)
        decimal("entries_per_second", summary.perSecond(counters.entriesDone))
        decimal("bytes_per_second", summary.perSecond(counters.bytesReceived))
        integer("exit_status", Int(summary.exitStatus))
        string("cache_dir", summary.cacheDirectory)
        string("message", summary.fatalMessage.map(redacted))
        integer("signal", summary.stoppedBySignal.map(Int.init))
        if let pruned = summary.pruned {
            beginObject(named: "pruned")
            integer("images", pruned.images)
            integer("variants", pruned.variants)
            integer("bytes", pruned.bytes)
            endObject()
        } else {
            null("pruned")
        }
        guard let outage = summary.outage else { return null("outage") }
        beginObject(named: "outage")
        string("reason", outage.reason.rawValue)
        integer("failures", outage.failures)
        integer("held_back", outage.heldBack)
        integer("asked", outage.asked)
        integer("hosts", outage.hostCount)
        endObject()
    }
}

extension JSONObject {
    /// The last line of a report, and what `--summary json` prints.
    ///
    /// - `type`: `"summary"`; `schema_version`: 3, of the whole report. Version 1
    ///   had neither `variants` nor `variants_made`, version 2 neither `decoded` nor `exclusions`, `not_decoded`,
    ///   `thumbhash` and `color`; all that they had is as it was, but for `width` and `height`, which may be null now.
    /// - `entries`: entries read.
    /// - `outcomes`: an object with the count of every ``Outcome``, zeros included; they add up to
    ///   `entries`.
    /// - `reasons`: an object with the count of every ``FailureReason`` of failures, zeros included, so that a
    ///   reader never has to tell a missing member from a zero; they add up to `outcomes.failed`.
    /// - `exclusions`: the same of exclusions by what the image is, which are part of `outcomes.excluded`.
    /// - `known_failures`: entries that failed in an earlier run for the same reason, part of
    ///   `outcomes.failed`.
    /// - `requests`, `bytes_received`, `bytes_stored`: numbers; `variants_made`: variants that the run
    ///   stored, as many as have their bytes in `bytes_stored`; `not_decoded`: entries of which something was stored as
    ///   it came, since its format is not decoded.
    /// - `started_at`: RFC 3339, UTC; `elapsed_ms`: milliseconds with three decimals.
    /// - `entries_per_second`, `bytes_per_second` (received): three decimals, null when no time
    ///   passed.
    /// - `exit_status`: number; `cache_dir`: text.
    /// - `message`: why the run could not be completed, or null; `signal`: the number of the signal
    ///   that stopped it, or null.
    /// - `outage`: null, or an object that says which failures are laid to an outage and so do not
    ///   block: `reason`, `failures` (entries that failed so; of `http-status` all but 404, 410 and
    ///   those that never block), `held_back` (those of them that do not block), `asked` (entries
    ///   that were asked for), `hosts` (number of hosts without any success).
    package init(_ summary: RunSummary) {
        self.init { $0.appendMembers(of: summary) }
    }
}

extension RunSummary {
    /// Nil when no time passed.
    func perSecond(_ count: Int) -> Double? {
        let seconds = elapsed.secondsValue
        return seconds > 0 ? Double(count) / seconds : nil
    }
}
