package import PrefetchModel
internal import SQLite

/// The rows that a new database has taken from a damaged or lost one.
package struct SalvageReport: Hashable, Sendable {
    package struct Counts: Hashable, Sendable {
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

    package internal(set) var salvaged = Counts()
    package internal(set) var restored = Counts()
    /// The time of the snapshot, if any row is from it.
    package internal(set) var snapshotTime: Timestamp?
    /// Images with readable rows and missing or incomplete files.
    package internal(set) var lostFiles = 0
    /// Whether it contains another database's pages, so that any image may have another's URL.
    package internal(set) var isMixed = false
}

extension SalvageReport.Counts {
    init(of database: Connection) throws {
        func count(_ source: String) throws -> Int {
            try database.first("SELECT count(*) FROM \(source)") { try $0.count(0) }
                ?? 0
        }
        images = try count(
            "resource WHERE EXISTS (SELECT 1 FROM variant WHERE resource_id = resource.id)")
        failures = try count("failure")
        hosts = try count("host")
        runs = try count("run")
    }
}
