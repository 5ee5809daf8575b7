import Hashing
import PrefetchModel
internal import SQLite

struct ScannedImage {
    let id: Int64
    /// Nil unless a rule compares keys: hashing them takes most of a scan.
    let key: KeyFingerprint?
    let host: String
    let validatedAt: Timestamp
    let expiresAt: Timestamp
}

/// Reads the rows that rules of ``PruneRules`` depend on.
enum PruneScan {

    /// The identifiers of images that any rule but a limit picks.
    static func images(
        pickedBy rules: PruneRules, in database: CacheDatabase, at now: Timestamp
    ) throws(StorageError) -> [Int64] {
        try database.read("looking for images to prune") { database in
            let predicates = try rules.imagePredicates(at: now, in: database)
            guard !predicates.isEmpty else { return [] }
            let hasher = SHA256Hasher()
            var picked: [Int64] = []
            try database.forEach(
                "SELECT id, host, validated_at, expires_at, key FROM resource ORDER BY id"
            ) { row in
                var key: KeyFingerprint?
                if rules.wanted != nil { key = KeyFingerprint(try row.text(4), hasher: hasher) }
                let image = ScannedImage(
                    id: try row.integer(0), key: key, host: try row.text(1),
                    validatedAt: try row.time(2), expiresAt: try row.time(3))
                if predicates.contains(where: { $0(image) }) { picked.append(image.id) }
            }
            return picked
        }
    }

    /// The identifiers of images that have selected variants.
    static func images(
        with selector: VariantSelector, in database: CacheDatabase
    ) throws(StorageError) -> [Int64] {
        try database.read("looking for variants to prune") { database in
            try database.prepare(
                """
                SELECT DISTINCT resource_id FROM variant
                WHERE resource_id > ?1 AND (\(selector.condition(parameter: "?2"))) ORDER BY resource_id
                """
            ).all([.integer(.min)] + selector.parameters) { try $0.integer(0) }
        }
    }

    /// The disk usage of an image. Removing it may free less, because images can share files.
    typealias Weight = (id: Int64, usage: DiskUsage)

    /// Read from the totals: usually no variant is superseded, and a scan is not needed.
    private static func hasSuperseded(in database: Connection) throws -> Bool {
        try database.hasRow("SELECT 1 FROM total WHERE superseded <> 0 AND variants > 0 LIMIT 1")
    }

    /// Images in the order in which limits remove them: least recently listed, requested or stored
    /// first. With a selector, only images with such variants, by the age of these.
    static func imagesByAge(
        with selector: VariantSelector?, in database: CacheDatabase, at now: Timestamp
    ) throws(StorageError) -> [Weight] {
        try database.read("looking for the oldest images") { database in
            if selector == .superseded, try !hasSuperseded(in: database) { return [] }
            let listed = selector == nil ? try LastListed.read(in: database) : nil
            let images = try database.prepare(
                """
                SELECT id, \(selector == nil ? "validated_at" : "0"), max(last_access_at), count(*),
                    sum((bytes + 4095) / 4096)
                FROM resource JOIN variant ON resource_id = id
                WHERE id > ?1 \(selector.map { "AND (\($0.condition(parameter: "?2")))" } ?? "")
                GROUP BY id
                """
            ).all([.integer(.min)] + (selector?.parameters ?? [])) { row in
                let id = try row.integer(0)
                let known = listed?.time(of: id) ?? .distantPast
                let time = max(try row.time(1), try row.time(2), known)
                let usage = DiskUsage(clamping: try row.count(3), blocks: try row.count(4))
                return (time: min(time, now).milliseconds, weight: (id: id, usage: usage))
            }
            return images.sorted { ($0.time, $0.weight.id) < ($1.time, $1.weight.id) }
                .map(\.weight)
        }
    }

    /// `unlisted-for`
    static func unlisted(
        for age: Int64, at now: Timestamp, in database: Connection
    ) throws -> PruneRule.ImagePredicate {
        let listed = try LastListed.read(in: database)
        let time = listed.start(of: .milliseconds(age), at: now)
        return { listed.isUnlisted($0, since: time, at: now) }
    }

    /// `unused-for`
    static func unused(
        for age: Int64, at now: Timestamp, in database: Connection
    ) throws -> PruneRule.ImagePredicate {
        let listed = try LastListed.read(in: database)
        let time = listed.start(of: .milliseconds(age), at: now)
        let requested = try imagesRequested(since: time, in: database)
        return { listed.isUnlisted($0, since: time, at: now) && !requested.contains($0.id) }
    }

    /// `expired-for`. An image that must be validated at each use is stale from its validation on.
    static func expired(
        for age: Int64, at now: Timestamp, in database: Connection
    ) -> PruneRule.ImagePredicate {
        { now.timeSince(max($0.expiresAt, $0.validatedAt)) > .milliseconds(age) }
    }

    /// `gone`
    static func gone(
        _: Int64, at now: Timestamp, in database: Connection
    ) throws -> PruneRule.ImagePredicate {
        let gone = Set(
            try database.all(
                """
                SELECT id FROM failure JOIN resource ON resource.key = failure.key
                WHERE reason = '\(FailureReason.httpStatus.rawValue)'
                    AND http_status IN (404, 410) AND class = 'permanent'
                    AND blacklisted_until IS NOT NULL
                """
            ) { try $0.integer(0) })
        return { gone.contains($0.id) }
    }

    /// `variants-unused-for`, counted back from the last time that a run used any variant.
    static func unusedVariants(
        for age: Int64, at now: Timestamp, in database: Connection
    ) throws -> VariantSelector {
        let last =
            try database.first("SELECT max(used_at) FROM variant_name") { try $0.optionalTime(0) }
            ?? nil
        return .unused(since: min(now, last ?? now).advanced(by: .zero - .milliseconds(age)))
    }

    /// The images with a variant that `get` has requested since a time, or that is as new.
    private static func imagesRequested(
        since time: Timestamp, in database: Connection
    ) throws -> ResourceSet {
        var images = ResourceSet()
        try database.forEach(
            "SELECT resource_id FROM variant WHERE last_access_at >= ?", .init(time)
        ) { row in images.insert(try row.integer(0)) }
        return images
    }
}
