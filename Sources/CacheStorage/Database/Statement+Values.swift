import PrefetchModel
internal import SQLite

extension Statement.Value {
    init(_ time: Timestamp) { self = .integer(time.milliseconds) }

    static func digest(_ digest: ContentDigest) -> Statement.Value { .blob(digest.bytes) }

    fileprivate var rank: Int {
        switch self {
        case .null: 0
        case .integer: 1
        case .text: 2
        case .blob: 3
        }
    }
}

extension Statement {
    func time(_ column: Int32) throws(SQLiteError) -> Timestamp {
        Timestamp(milliseconds: try integer(column))
    }

    func optionalTime(_ column: Int32) throws(SQLiteError) -> Timestamp? {
        isNull(column) ? nil : try time(column)
    }

    /// The placeholder in the columns `thumbhash` and `color`; nil if the first is NULL.
    func placeholder(from column: Int32) throws(SQLiteError) -> Placeholder? {
        if isNull(column) { return nil }
        let hash = try thumbHash(column)
        let number = try optionalInteger(column + 1)
        return Placeholder(
            thumbHash: hash,
            colour: try number.map { number throws(SQLiteError) in
                try value(RGBColor(number: Int(number)), orDamage: "\(number)", in: column + 1)
            })
    }

    func thumbHash(_ column: Int32) throws(SQLiteError) -> [UInt8] {
        try blob(column, orDamage: "a ThumbHash of another length") {
            (5...25).contains($0.count) ? [UInt8]($0) : nil
        }
    }

    /// The columns of ``validation(from:)``.
    static let validationColumns = """
        url, final_url, permanent_url, permanent_until, redirects, host, etag, last_modified,
        cache_control, expires, vary, date, content_type, fetched_at, validated_at, expires_at,
        listed_url
        """

    /// Reads ``validationColumns``.
    func validation(from column: Int32) throws(SQLiteError) -> ResourceValidation {
        var location = ResourceLocation(
            url: try text(column), listedURL: try optionalText(column + 16),
            finalURL: try optionalText(column + 1),
            redirects: try count(column + 4), host: try text(column + 5))
        if let url = try optionalText(column + 2), let until = try optionalTime(column + 3) {
            location.permanent = PermanentTarget(url: url, until: until)
        }
        return ResourceValidation(
            location: location, response: try response(from: column + 6),
            fetchedAt: try time(column + 13), validatedAt: try time(column + 14),
            expiresAt: try time(column + 15))
    }

    /// Reads `etag, last_modified, cache_control, expires, vary, date, content_type`.
    func response(from column: Int32) throws(SQLiteError) -> StoredResponse {
        StoredResponse(
            entityTag: try optionalText(column), lastModified: try optionalText(column + 1),
            cacheControl: try optionalText(column + 2), expires: try optionalText(column + 3),
            vary: try optionalText(column + 4), date: try optionalTime(column + 5),
            contentType: try optionalText(column + 6))
    }

    func digest(_ column: Int32) throws(SQLiteError) -> ContentDigest {
        try blob(column, orDamage: "a digest of another length") { ContentDigest(bytes: $0) }
    }
}

extension [Statement.Value] {
    /// The first and last digest of a folder.
    static func digests(ofFolder folder: UInt8) -> [Statement.Value] {
        [0, .max].map {
            .blob([folder] + [UInt8](repeating: $0, count: ContentDigest.byteCount - 1))
        }
    }

    /// Whether values sort before others in SQLite ("Datatypes In SQLite", section 4).
    func precedes(_ other: [Statement.Value]) -> Bool {
        for (value, other) in zip(self, other) {
            switch (value, other) {
            case (.integer(let value), .integer(let other)) where value != other:
                return value < other
            case (.text(let value), .text(let other))
            where !value.utf8.elementsEqual(other.utf8):
                return value.utf8.lexicographicallyPrecedes(other.utf8)
            case (.blob(let value), .blob(let other)) where value != other:
                return value.lexicographicallyPrecedes(other)
            default:
                if value.rank != other.rank { return value.rank < other.rank }
            }
        }
        return false
    }
}
