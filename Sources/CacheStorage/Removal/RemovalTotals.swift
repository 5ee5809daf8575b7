/// The totals of a removal, or of its estimate.
package struct RemovalTotals: Hashable, Sendable {
    /// Images removed with all their variants.
    package var images = 0
    package var variants = 0
    /// Files that no remaining image shares.
    package var files = 0
    /// The sum of the sizes of these files.
    package var bytes = 0
    /// Failures of URLs without an image.
    package var failures = 0
    /// Rows of hosts, runs and partial downloads.
    package var hosts = 0
    package var runs = 0
    package var parts = 0

    package init() {}

    package mutating func add(_ other: RemovalTotals) {
        images += other.images
        variants += other.variants
        files += other.files
        // Damaged rows may hold any number.
        bytes &+= other.bytes
        failures += other.failures
        hosts += other.hosts
        runs += other.runs
        parts += other.parts
    }
}
