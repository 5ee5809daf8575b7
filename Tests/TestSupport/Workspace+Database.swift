import Foundation

extension Workspace {
    /// What a statement finds in the cache's database, all values as text; it may change rows, too.
    ///
    /// Python's SQLite carries it out, and not the library that the program has in it.
    ///
    /// - Throws: ``QueryFailed``.
    @discardableResult
    package func query(_ sql: String) async throws -> [[String?]] {
        let script = """
            import json, sqlite3, sys
            base = sqlite3.connect("file:" + sys.argv[1] + "?mode=rw", uri=True, timeout=30)
            text = lambda v: v.hex() if isinstance(v, bytes) else None if v is None else str(v)
            rows = [[text(v) for v in row] for row in base.execute(sys.argv[2])]
            base.commit()
            base.close()
            print(json.dumps(rows))
            """
        let command = Command(
            executable: "/usr/bin/python3",
            arguments: ["-I", "-c", script, cache + "/prefetch.sqlite", sql],
            environment: ["PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"], folder: folder)
        let result = try await command.run()
        let value = try? JSONSerialization.jsonObject(with: Data(result.output.utf8))
        guard result.status == 0, let rows = value as? [[Any]] else {
            throw QueryFailed(description: "\(sql)\n\(result)")
        }
        return rows.map { row in row.map { $0 as? String } }
    }

    package struct QueryFailed: Error, CustomStringConvertible {
        package let description: String
    }

    /// What tells whether a file was touched.
    package struct FileIdentity: Equatable, Sendable {
        let number: Int
        let modified: Date
    }

    /// Of a file of the cache; the path is relative to it.
    package func identity(of path: String) throws -> FileIdentity {
        let attributes = try FileManager.default.attributesOfItem(atPath: "\(cache)/\(path)")
        guard let number = attributes[.systemFileNumber] as? Int,
            let modified = attributes[.modificationDate] as? Date
        else { throw CocoaError(.fileReadUnknown) }
        return FileIdentity(number: number, modified: modified)
    }

    /// The bytes of a file of the cache, or of any absolute path.
    package func bytes(of path: String) throws -> [UInt8] {
        let url = URL(filePath: path.hasPrefix("/") ? path : "\(cache)/\(path)")
        return Array(try Data(contentsOf: url))
    }

    /// What the extended attributes of the files below the folder say: one `NAME=VALUE` line each,
    /// by path relative to the folder.
    package func extendedAttributes() async throws -> [String: String] {
        let script = """
            import json, os
            found = {}
            for parent, folders, names in os.walk("."):
                for path in [os.path.join(parent, name) for name in names]:
                    try:
                        lines = [f"{name}=" + os.getxattr(path, name).decode(errors="replace") + "\\n"
                            for name in os.listxattr(path)]
                    except FileNotFoundError:
                        continue
                    found[path[2:]] = "".join(lines)
            print(json.dumps(found))
            """
        let result = try await Command(
            executable: "/usr/bin/python3", arguments: ["-I", "-c", script],
            environment: ["PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"], folder: folder
        ).run()
        let value = try? JSONSerialization.jsonObject(with: Data(result.output.utf8))
        guard result.status == 0, let attributes = value as? [String: String] else {
            throw QueryFailed(description: "\(result)")
        }
        return attributes
    }

    /// Removes a file of the cache; the path is relative to it.
    package func removeFile(_ path: String) throws {
        try FileManager.default.removeItem(atPath: "\(cache)/\(path)")
    }
}
