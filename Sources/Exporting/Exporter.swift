internal import CArchive
package import PrefetchModel

package enum Exporter {
    package enum Problem: Sendable {
        /// A content file of the cache is missing or damaged.
        case damaged
        /// A file that no export wrote has its path.
        case foreign
    }

    /// Writes the files of a plan after ``ExportPlan/settle()``; ``ExportTree/finish()`` puts them
    /// in place. The functions are called on any thread.
    ///
    /// - Returns: the files that were not written.
    /// - Throws: ``UserError``; the folder is as it was then.
    package static func write(
        _ plan: ExportPlan, to tree: ExportTree, workers: Int,
        isCancelled: @escaping @Sendable () -> Bool,
        progress: @escaping @Sendable (_ done: Int, _ all: Int) -> Void
    ) throws(UserError) -> [(path: String, problem: Problem)] {
        let files = plan.files()
        let needsArchives = files.contains { if case .archive = $0.content { true } else { false } }
        if needsArchives, let reason = carchive_load() {
            throw UserError(
                .failed, "libarchive", "cannot be loaded: \(String(cString: reason))",
                hint: "install libarchive (Debian's package is libarchive13)")
        }
        return try tree.add(files, workers: workers, isCancelled: isCancelled) {
            progress($0, files.count)
        }
    }
}
