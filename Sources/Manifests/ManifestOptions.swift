package import PrefetchModel

/// How the lines of a manifest are written.
package enum ManifestFormat: String, CaseIterable, Sendable {
    /// By the file: `text`, unless it begins like something that is no list of URLs.
    case auto
    /// One URL a line with optional fields, whatever it looks like; see ``ManifestReader``.
    case text
}

/// How a manifest is read.
package struct ManifestOptions: Sendable {
    package var format: ManifestFormat
    /// An absolute `http` or `https` URL that relative entries resolve against (RFC 3986 §5);
    /// without it a relative entry is a bad line.
    package var baseURL: String?
    /// The variants of the run that reads, which the fields `variants` and `encode` are checked against;
    /// nil for a reader that makes none: it takes the fields if they are well written, and `variants`
    /// picks nothing.
    package var variants: VariantSet?
    /// The length of a line, line end excluded, up to which it is looked at; a longer one is a bad
    /// entry. Default 64 KiB; at least 1.
    package var maximumLineBytes: Int
    /// The most entries in a batch. Default 4096; at least 1.
    package var maximumBatchEntries: Int
    /// The text and extras of a batch after which it is given although it has few entries. Default
    /// 1 MiB; at least 1 and at most 1 GiB, so that with one more entry it stays within the 32 bits
    /// of a record.
    package var maximumBatchBytes: Int
    /// The most bytes asked of the source, or of its decompression, at once. Default 128 KiB; at
    /// least 1.
    package var readBytes: Int

    package init(
        format: ManifestFormat = .auto, baseURL: String? = nil, variants: VariantSet? = nil,
        maximumLineBytes: Int = 64 << 10, maximumBatchEntries: Int = 4096,
        maximumBatchBytes: Int = 1 << 20, readBytes: Int = 128 << 10
    ) {
        self.format = format
        self.baseURL = baseURL
        self.variants = variants
        self.maximumLineBytes = max(1, maximumLineBytes)
        self.maximumBatchEntries = max(1, maximumBatchEntries)
        self.maximumBatchBytes = min(max(1, maximumBatchBytes), 1 << 30)
        self.readBytes = max(1, readBytes)
    }
}
