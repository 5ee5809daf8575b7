/// What was removed, or would be.
package struct RemovalTotals: Hashable, Sendable {
    /// Of which nothing is left.
    package var images = 0
    package var variants = 0
    /// That no other image has.
    package var files = 0
    /// Of these files.
    package var bytes = 0
    /// URLs without an image that had failed.
    package var failures = 0
    /// Rows of hosts, of runs and of parts of bodies.
    package var hosts = 0
    package var runs = 0
    package var parts = 0

    package init() {}

    package mutating func add(_ other: RemovalTotals) {
        images += other.images
        variants += other.variants
        files += other.files
        // Damaged rows may say anything.
        bytes &+= other.bytes
        failures += other.failures
        hosts += other.hosts
        runs += other.runs
        parts += other.parts
    }
}
