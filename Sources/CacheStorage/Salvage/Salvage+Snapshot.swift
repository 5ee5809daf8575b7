import PrefetchModel
internal import SQLite

extension Salvage {
    /// Adds rows of the snapshot that the damaged database did not yield. Tables that were read
    /// completely get none: rows that they lack were removed. Of an image in both, the damaged
    /// database's newer row stays. Variants are added only to the source that they were made from.
    /// Returns the time of the snapshot; nil without a readable one.
    mutating func mergeSnapshot() throws -> Timestamp? {
        guard !incomplete.isEmpty, let (snapshot, time) = try openSnapshot() else { return nil }
        for insertion in insertions {
            switch insertion.table.name {
            case "resource":
                try forEachRow(of: insertion, in: snapshot) { try match($0, insertion) }
            case "variant", "attribute":
                guard incomplete.contains(insertion.table.name) || !added.isEmpty else { continue }
                try forEachRow(of: insertion, in: snapshot) { try follow($0, insertion) }
            case let name:
                guard incomplete.contains(name) else { continue }
                try forEachRow(of: insertion, in: snapshot) { _ = try insertion.insert($0) }
            }
        }
        // Images without files were removed since the snapshot.
        for id in added {
            try target.run(
                """
                DELETE FROM resource WHERE id = ?1
                    AND NOT EXISTS (SELECT 1 FROM variant WHERE resource_id = ?1)
                """, .integer(id))
        }
        return time
    }

    private func openSnapshot() throws -> (Connection, Timestamp)? {
        guard let time = directory.snapshotTime else { return nil }
        do {
            let connection = try Connection(
                path: directory.path(of: CacheDirectory.snapshotName), access: .immutable)
            try connection.readSchema()
            // Each table is compared before its rows are read.
            let isOurs =
                try connection.pragma("application_id") == Schema.applicationID
                && connection.pragma("user_version") == Schema.schemaVersion
            return isOurs ? (connection, time) : nil
        } catch let error as SQLiteError where error.isUnreadable {
            return nil
        }
    }

    /// Calls `body` with the valid rows of a table, up to damage.
    private func forEachRow(
        of insertion: RowInsertion, in snapshot: Connection,
        _ body: (borrowing Statement) throws -> Void
    ) throws {
        do {
            try insertion.layout.check(in: snapshot)
        } catch {
            // The snapshot has no such table, or cannot be read.
            return
        }
        let rows = try snapshot.prepare(
            "SELECT \(insertion.layout.list) FROM \(insertion.table.name)")
        while try rows.stepIfReadable() == true {
            if try insertion.isValid(rows) { try body(rows) }
        }
    }

    /// Finds the resource with the row's key, or adds it.
    private mutating func match(_ row: borrowing Statement, _ insertion: RowInsertion) throws {
        let columns = insertion.layout
        let id = try row.integer(columns["id"])
        let known = try target.first(
            "SELECT id, source_sha256 FROM resource WHERE key = ?", row.value(columns["key"])
        ) { (id: try $0.integer(0), source: try $0.digest(1)) }
        if let known, try !makesRoom(of: known.id) {
            let isSame = try row.digest(columns["source_sha256"]) == known.source
            if !isSame || known.id != id {
                identifiers.updateValue(isSame ? known.id : nil, forKey: id)
            }
            return
        }
        guard incomplete.contains("resource") else {
            identifiers.updateValue(nil, forKey: id)
            return
        }
        let isTaken =
            try target.hasRow("SELECT 1 FROM resource WHERE id = ?", .integer(id))
        guard
            case .inserted = try insertion.insert(
                row, replacing: isTaken ? [columns["id"]: .null] : [:])
        else {
            identifiers.updateValue(nil, forKey: id)
            return
        }
        let newID = target.lastInsertedRowID
        if newID != id { identifiers.updateValue(newID, forKey: id) }
        added.insert(newID)
    }

    /// Removes a resource that has lost its variants, in favour of the snapshot's.
    private func makesRoom(of resource: Int64) throws -> Bool {
        guard incomplete.contains("resource") else { return false }
        try target.run(
            """
            DELETE FROM resource WHERE id = ?1
                AND NOT EXISTS (SELECT 1 FROM variant WHERE resource_id = ?1)
            """, .integer(resource))
        return target.changes > 0
    }

    private func follow(_ row: borrowing Statement, _ insertion: RowInsertion) throws {
        let columns = insertion.layout
        let id = try row.integer(columns["resource_id"])
        guard let newID = identifiers[id, default: id],
            incomplete.contains(columns.table) || added.contains(newID)
        else { return }
        if columns.table == "variant", try !directory.hasFile(of: row, columns) { return }
        _ = try insertion.insert(row, replacing: [columns["resource_id"]: .integer(newID)])
    }
}
