import CacheStorage
import PrefetchModel

extension CacheVerification {
    package struct Finding: Hashable, Sendable {
        package enum FindingKind: String, Sendable {
            case database
            /// A row's file is missing, or is not a file.
            case missing
            case truncated
            /// A file is longer than its row says, or its bytes do not match its name.
            case damaged
            /// A file has another format or pixel size than its row.
            case mismatch
            case unreadable
            /// A file without a row.
            case orphan
            /// An entry of `content` that is not a content file; it is never removed.
            case unexpected
            /// Files have another mode than the cache. `chmod` changes it.
            case mode
            /// The table `freshness` differs from its source.
            case freshness
            /// The stored totals differ from the sums of the rows.
            case totals
            case partial
            /// The log of crashes has malformed lines.
            case crashes
        }

        package let kind: FindingKind
        /// The path below the cache directory; nil for problems of rows.
        package var path: String?
        package var keys: [String] = []
        package let message: String
        package var isRepaired = false

        /// Whether something that a repair keeps is in the place of the file.
        var isBlocked = false

        /// Whether a repair would fix it, as far as is known.
        package var isRepairable: Bool {
            switch kind {
            case .missing, .truncated, .damaged, .mismatch, .orphan, .freshness, .totals, .partial,
                .crashes:
                !isBlocked
            case .database, .unreadable, .unexpected, .mode: false
            }
        }
    }
}
