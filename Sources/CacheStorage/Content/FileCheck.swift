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
