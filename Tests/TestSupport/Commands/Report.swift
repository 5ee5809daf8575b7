import Foundation

/// A run's JSON Lines report, validated while it is read. Every line is a JSON object, every entry
/// has exactly one result, and the summary is last and its counts add up.
package struct Report: Sendable {
    package struct Entry: Sendable {
        package let manifest: String
        package let line: Int
        package let url: String
        package let key: String
        package let outcome: String
        package let reason: String?
        package let message: String?
        package let warning: String?
        package let httpStatus: Int?
        package let attempts: Int
        package let start: Int?
        package let bytesReceived: Int
        package let bytesStored: Int?
        package let format: String?
        /// False for source bytes stored unchanged.
        package let isDecoded: Bool?
        package let width: Int?
        package let height: Int?
        package let orientation: Int?
        package let sha256: String?
        /// Relative to the cache folder.
        package let path: String?
        package let expiresAt: String?
        package let finalURL: String?
        package let contentType: String?
        package let redirects: Int?
        package let blacklistedUntil: String?
        /// In the order of the line; empty for `main` alone.
        package let variants: [Variant]
        /// Nil if nothing was decoded.
        package let decodeMilliseconds: Double?

        /// `failed/not-an-image`, `downloaded`, `blacklisted`.
        package var verdict: String {
            outcome == "blacklisted" ? outcome : reason.map { "\(outcome)/\($0)" } ?? outcome
        }
    }

    /// The part of a line for one of several variants.
    package struct Variant: Equatable, Sendable {
        package let name: String
        package let recipe: String
        package let outcome: String
        package let reason: String?
        package let format: String?
        package let width: Int?
        package let height: Int?
        package let orientation: Int?
        package let bytes: Int?
        package let sha256: String?
        /// Relative to the cache folder.
        package let path: String?
    }

    package struct Summary: Sendable {
        package let entries: Int
        /// Counts above zero, by outcome.
        package let outcomes: [String: Int]
        /// Counts above zero, by reason.
        package let reasons: [String: Int]
        package let exitStatus: Int?
        package let variantsMade: Int?
        package let notDecoded: Int?
        package let knownFailures: Int?
        /// Counts above zero, by reason.
        package let exclusions: [String: Int]
        package let outage: Outage?
        package let sandbox: String?

        /// The outage in the summary.
        package struct Outage: Equatable, Sendable {
            package let reason: String
            package let failures: Int
            package let heldBack: Int
            package let asked: Int
            package let hosts: Int

            package init(reason: String, failures: Int, heldBack: Int, asked: Int, hosts: Int) {
                self.reason = reason
                self.failures = failures
                self.heldBack = heldBack
                self.asked = asked
                self.hosts = hosts
            }

            /// Nil if a field is missing.
            fileprivate init?(_ object: [String: Any]) {
                guard let reason = object["reason"] as? String,
                    let failures = object["failures"] as? Int,
                    let heldBack = object["held_back"] as? Int,
                    let asked = object["asked"] as? Int, let hosts = object["hosts"] as? Int
                else { return nil }
                self.init(
                    reason: reason, failures: failures, heldBack: heldBack, asked: asked,
                    hosts: hosts)
            }
        }

        package subscript(outcome: String) -> Int { outcomes[outcome, default: 0] }

        /// Parses a summary.
        ///
        /// - Throws: ``Invalid`` when the text is not one summary object.
        package init(json text: String) throws {
            let trimmed = text.trimmingCharacters(in: .whitespacesAndNewlines)
            guard let object = Report.object(trimmed), object["type"] as? String == "summary" else {
                throw Invalid(description: "this is no summary object: \(text)")
            }
            guard object["schema_version"] as? Int == 3 else {
                throw Invalid(description: "the summary has another schema version: \(text)")
            }
            guard let entries = object["entries"] as? Int,
                let outcomes = object["outcomes"] as? [String: Int],
                let reasons = object["reasons"] as? [String: Int]
            else {
                throw Invalid(description: "the summary has no counts: \(text)")
            }
            guard outcomes.values.reduce(0, +) == entries else {
                throw Invalid(description: "the outcomes do not add up to the entries: \(text)")
            }
            self.entries = entries
            self.outcomes = outcomes.filter { $0.value != 0 }
            self.reasons = reasons.filter { $0.value != 0 }
            exclusions = (object["exclusions"] as? [String: Int] ?? [:]).filter { $0.value != 0 }
            notDecoded = object["not_decoded"] as? Int
            knownFailures = object["known_failures"] as? Int
            exitStatus = object["exit_status"] as? Int
            variantsMade = object["variants_made"] as? Int
            sandbox = object["sandbox"] as? String
            outage = (object["outage"] as? [String: Any]).flatMap(Outage.init)
        }
    }

    package struct Invalid: Error, CustomStringConvertible {
        package let description: String
    }

    /// In the order of the report.
    package let entries: [Entry]
    package let summary: Summary

    /// Reads and validates a report.
    ///
    /// - Throws: ``Invalid`` with the problems, or the error of reading the file.
    package init(contentsOfFile path: String) throws {
        try self.init(text: String(contentsOfFile: path, encoding: .utf8))
    }

    package init(text: String) throws {
        guard text.hasSuffix("\n") else {
            throw Invalid(
                description: "the report does not end with a line end: \(text.suffix(200))")
        }
        let lines = text.dropLast().split(separator: "\n", omittingEmptySubsequences: false)
        entries = try lines.dropLast().map { line in
            guard let object = Report.object(String(line)), let entry = Entry(object) else {
                throw Invalid(description: "not a result line: \(line)")
            }
            return entry
        }
        summary = try Summary(json: String(lines[lines.count - 1]))
        let problems = self.problems
        if !problems.isEmpty {
            throw Invalid(
                description: "the report is not accounted: \(problems.joined(separator: "; "))")
        }
    }

    /// The entry of a line, for manifests without duplicates.
    package subscript(line number: Int) -> Entry? { entries.first { $0.line == number } }

    /// ``Entry/verdict`` by line, in order of lines.
    package var verdicts: [String] { entries.sorted { $0.line < $1.line }.map(\.verdict) }

    /// The lines in the order in which their transfers started.
    package var linesByStart: [Int] {
        entries.filter { $0.start != nil }.sorted { ($0.start ?? 0) < ($1.start ?? 0) }.map(\.line)
    }

    private static let outcomes: Set<String> = [
        "downloaded", "revalidated", "fresh", "derived", "duplicate", "blacklisted", "excluded",
        "failed", "cancelled", "requested",
    ]

    private static let reasons: Set<String> = [
        "invalid-entry", "unsupported-scheme", "refused-address", "dns", "connect", "tls",
        "timeout",
        "stalled", "interrupted", "redirect", "http-status", "too-large", "not-an-image",
        "corrupt-image", "too-many-pixels", "unsupported-image", "uncacheable", "body-filter",
        "disk",
        "internal",
        "other-format", "min-size", "max-aspect", "min-bytes", "not-selected", "robots",
    ]

    private var problems: [String] {
        var problems: [String] = []
        var outcomes: [String: Int] = [:]
        var reasons: [String: Int] = [:]
        var exclusions: [String: Int] = [:]
        var places: Set<String> = []
        for entry in entries {
            outcomes[entry.outcome, default: 0] += 1
            if !Report.outcomes.contains(entry.outcome) {
                problems.append("line \(entry.line): unknown outcome \(entry.outcome)")
            }
            if let reason = entry.reason, !Report.reasons.contains(reason) {
                problems.append("line \(entry.line): unknown reason \(reason)")
            }
            switch (entry.outcome, entry.reason) {
            case ("failed", nil): problems.append("line \(entry.line): failed without a reason")
            case ("failed", let reason?): reasons[reason, default: 0] += 1
            case ("blacklisted", nil):
                problems.append("line \(entry.line): blacklisted without a reason")
            case ("excluded", let reason?): exclusions[reason, default: 0] += 1
            case ("duplicate", _), ("blacklisted", _), (_, nil): break
            case (_, _?): problems.append("line \(entry.line): \(entry.outcome) with a reason")
            }
            if entry.outcome == "downloaded", entry.path == nil || entry.sha256 == nil {
                problems.append("line \(entry.line): downloaded without a path or digest")
            }
            if let first = entry.variants.first,
                first.sha256 != entry.sha256 || first.path != entry.path
            {
                problems.append("line \(entry.line): another image than that of its first variant")
            }
            for variant in entry.variants
            where (variant.outcome == "failed") != (variant.reason != nil) {
                // A blacklisted variant has the reason of the earlier failure.
                if variant.outcome == "blacklisted" { continue }
                problems.append(
                    "line \(entry.line): \(variant.name) has a reason or has not failed")
            }
            if !places.insert("\(entry.manifest):\(entry.line)").inserted {
                problems.append("line \(entry.line): two results")
            }
        }
        let starts = entries.compactMap(\.start).sorted()
        if starts != Array(0..<starts.count).map({ $0 + 1 }) {
            problems.append("starts are not 1…\(starts.count): \(starts.prefix(40))")
        }
        if outcomes != summary.outcomes {
            problems.append("outcomes are \(outcomes), the summary says \(summary.outcomes)")
        }
        if reasons != summary.reasons {
            problems.append("reasons are \(reasons), the summary says \(summary.reasons)")
        }
        if exclusions != summary.exclusions {
            problems.append("exclusions are \(exclusions), the summary says \(summary.exclusions)")
        }
        return problems
    }

    private static func object(_ text: String) -> [String: Any]? {
        try? JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]
    }
}

extension Report.Entry {
    /// Nil unless the object is a result with all required fields.
    fileprivate init?(_ object: [String: Any]) {
        guard object["type"] as? String == "result",
            let manifest = object["manifest"] as? String, let line = object["line"] as? Int,
            let url = object["url"] as? String, let key = object["key"] as? String,
            let outcome = object["outcome"] as? String
        else { return nil }
        let variants = (object["variants"] as? [[String: Any]] ?? []).map(Report.Variant.init)
        guard variants.allSatisfy({ $0 != nil }) else { return nil }
        self.variants = variants.compactMap { $0 }
        self.manifest = manifest
        self.line = line
        self.url = url
        self.key = key
        self.outcome = outcome
        reason = object["reason"] as? String
        message = object["message"] as? String
        warning = object["warning"] as? String
        httpStatus = object["http_status"] as? Int
        attempts = object["attempts"] as? Int ?? 0
        start = object["start"] as? Int
        bytesReceived = object["bytes_received"] as? Int ?? 0
        bytesStored = object["bytes_stored"] as? Int
        format = object["format"] as? String
        isDecoded = object["decoded"] as? Bool
        width = object["width"] as? Int
        height = object["height"] as? Int
        orientation = object["orientation"] as? Int
        sha256 = object["sha256"] as? String
        path = object["path"] as? String
        expiresAt = object["expires_at"] as? String
        finalURL = object["final_url"] as? String
        contentType = object["content_type"] as? String
        redirects = object["redirects"] as? Int
        blacklistedUntil = object["blacklisted_until"] as? String
        decodeMilliseconds = object["decode_ms"] as? Double
    }
}

extension Report.Variant {
    /// Nil unless the object has all required fields.
    fileprivate init?(_ object: [String: Any]) {
        guard let name = object["name"] as? String, let recipe = object["recipe"] as? String,
            let outcome = object["outcome"] as? String
        else { return nil }
        self.name = name
        self.recipe = recipe
        self.outcome = outcome
        reason = object["reason"] as? String
        format = object["format"] as? String
        width = object["width"] as? Int
        height = object["height"] as? Int
        orientation = object["orientation"] as? Int
        bytes = object["bytes"] as? Int
        sha256 = object["sha256"] as? String
        path = object["path"] as? String
    }
}
