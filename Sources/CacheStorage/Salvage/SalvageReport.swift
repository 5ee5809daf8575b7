package import PrefetchModel
internal import SQLite

/// What a new database has from one that was damaged or lost.
package struct SalvageReport: Hashable, Sendable {
    /// Numbers of rows that people know of.
    package struct Counts: Hashable, Sendable {
        /// Images of which a variant is stored.
        package var images = 0
        package var failures = 0
        package var hosts = 0
        package var runs = 0

        package static func - (left: Counts, right: Counts) -> Counts {
            Counts(
                images: max(0, left.images - right.images),
                failures: max(0, left.failures - right.failures),
                hosts: max(0, left.hosts - right.hosts), runs: max(0, left.runs - right.runs))
        }

        package var isEmpty: Bool { self == Counts() }
    }

    /// Out of the damaged database.
    package internal(set) var salvaged = Counts()
    /// Out of the snapshot, beside these.
    package internal(set) var restored = Counts()
    /// When the snapshot was taken that something is from; nil without one.
    package internal(set) var snapshotTime: Timestamp?
    /// Images whose rows could be read and whose files are not there in their whole size.
    package internal(set) var lostFiles = 0
    /// Whether pages of another database are in it, so that nothing says which image belongs to
    /// which URL.
    package internal(set) var isMixed = false
}

extension SalvageReport.Counts {
    init(of database: Connection) throws {
        func count(_ source: String) throws -> Int {
            try Statement(database, sql: "SELECT count(*) FROM \(source)").first { try $0.count(0) }
                ?? 0
        }
        images = try count(
            "resource WHERE EXISTS (SELECT 1 FROM variant WHERE resource_id = resource.id)")
        failures = try count("failure")
        hosts = try count("host")
        runs = try count("run")
    }
}
