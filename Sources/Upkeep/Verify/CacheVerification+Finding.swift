import CacheStorage
import PrefetchModel

extension CacheVerification {
    /// Something that is not as it should be.
    package struct Finding: Hashable, Sendable {
        package enum Kind: String, Sendable {
            /// The database cannot be read as a whole.
            case database
            /// A row's file is not there, has another size, or something else has its place.
            case missing
            /// A file's bytes are others than its name says.
            case damaged
            /// A file is not of the format or the size in pixels that its row says.
            case mismatch
            /// A file cannot be read.
            case unreadable
            /// A file that no row names.
            case orphan
            /// Something in `content` that is no content file of ours; it is left alone.
            case unexpected
            /// The table `freshness` does not say what it is a copy of.
            case freshness
            /// The totals that are kept with each change are not the sums of the rows.
            case totals
            /// A body that broke off is gone or damaged.
            case partial
            /// The file of images that ended a run has lines that are none.
            case crashes
        }

        package let kind: Kind
        /// Below the cache directory; nil where it is about rows alone.
        package var path: String?
        /// Of images that it is about.
        package var keys: [String] = []
        package let message: String
        /// Whether a repair has repaired it.
        package var isRepaired = false

        /// Whether a repair would mend it, as far as that can be told.
        package var isRepairable: Bool

        init(
            kind: Kind, path: String? = nil, keys: [String] = [], message: String,
            isRepaired: Bool = false
        ) {
            self.kind = kind
            self.path = path
            self.keys = keys
            self.message = message
            self.isRepaired = isRepaired
            switch kind {
            case .missing, .damaged, .mismatch, .orphan, .freshness, .totals, .partial, .crashes:
                isRepairable = true
            case .database, .unreadable, .unexpected: isRepairable = false
            }
        }
    }
}
