import PrefetchModel
internal import SQLite

/// The extent to which a run checks that the files of the cache's rows exist.
package enum FileCheck: String, CaseIterable, Sendable {
    /// Lists the folders that have changed since all their files were last seen. Finds removed
    /// files, and usually lists nothing.
    case auto
    /// Every file must exist with its full size.
    case always
    /// Rows are trusted.
    case never
}

extension Statement {
    /// Binds the first and last digest of a folder.
    func bind(folder: UInt8) throws {
        let rest = ContentDigest.byteCount - 1
        try bind(.blob([folder] + [UInt8](repeating: 0, count: rest)), at: 1)
        try bind(.blob([folder] + [UInt8](repeating: .max, count: rest)), at: 2)
    }
}
