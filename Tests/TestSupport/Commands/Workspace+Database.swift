import Foundation

extension Workspace {
    /// Executes a statement on the database of a cache, a subfolder, and returns the rows, all
    /// values as text. It may change rows.
    ///
    /// Uses Python's SQLite, not the program's library.
    ///
    /// - Throws: ``QueryFailed``.
    @discardableResult
    package func query(_ sql: String, of name: String = "cache") async throws -> [[String?]] {
        let answer = try await PythonServer.run(
            """
            import json, sqlite3, sys
            base = sqlite3.connect("file:" + sys.argv[1] + "?mode=rw", uri=True, timeout=30)
            text = lambda v: v.hex() if isinstance(v, bytes) else None if v is None else str(v)
            rows = [[text(v) for v in row] for row in base.execute(sys.argv[2])]
            base.commit()
            base.close()
            print(json.dumps(rows))
            """, ["\(folder)/\(name)/prefetch.sqlite", sql], folder: folder)
        let value = try? JSONSerialization.jsonObject(with: Data(answer.text.utf8))
        guard answer.status == 0, let rows = value as? [[Any]] else {
            throw QueryFailed(description: "\(sql)\n\(answer.text)")
        }
        return rows.map { row in row.map { $0 as? String } }
    }

    /// Changes the database of a cache from outside, for example to simulate another version or a
    /// wrong clock.
    ///
    /// - Throws: ``QueryFailed``.
    package func runSQL(_ sql: String, of name: String = "cache") async throws {
        let answer = try await PythonServer.run(
            """
            import sqlite3, sys
            base = sqlite3.connect(sys.argv[1], timeout=30)
            base.executescript(sys.argv[2])
            base.commit()
            base.close()
            """, ["\(folder)/\(name)/prefetch.sqlite", sql], folder: folder)
        guard answer.status == 0 else {
            throw QueryFailed(description: "\(sql)\n\(answer.text)")
        }
    }

    package struct QueryFailed: Error, CustomStringConvertible {
        package let description: String
    }

    /// Changes whenever a file is replaced or written.
    package struct FileIdentity: Equatable, Sendable {
        let number: Int
        let modified: Date
    }

    /// The identity of a file; the path is relative to the cache.
    package func identity(of path: String) throws -> FileIdentity {
        let attributes = try FileManager.default.attributesOfItem(atPath: "\(cache)/\(path)")
        guard let number = attributes[.systemFileNumber] as? Int,
            let modified = attributes[.modificationDate] as? Date
        else { throw CocoaError(.fileReadUnknown) }
        return FileIdentity(number: number, modified: modified)
    }

    /// The bytes of a file; the path is absolute or relative to the cache.
    package func bytes(of path: String) throws -> [UInt8] {
        let url = URL(filePath: path.hasPrefix("/") ? path : "\(cache)/\(path)")
        return Array(try Data(contentsOf: url))
    }

    /// The extended attributes of the files below the folder: one `NAME=VALUE` line each, by path
    /// relative to the folder.
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
        let answer = try await PythonServer.run(script, folder: folder)
        let value = try? JSONSerialization.jsonObject(with: Data(answer.text.utf8))
        guard answer.status == 0, let attributes = value as? [String: String] else {
            throw QueryFailed(description: answer.text)
        }
        return attributes
    }

    /// Removes a file; the path is relative to the cache.
    package func removeFile(_ path: String) throws {
        try FileManager.default.removeItem(atPath: "\(cache)/\(path)")
    }
}
