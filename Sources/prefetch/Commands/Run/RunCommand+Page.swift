import CacheStorage
import Pages
import Reporting

extension RunCommand {
    /// Writes the page of `--html`.
    ///
    /// - Returns: The exit status: 2 if the page cannot be written.
    func writePage(_ output: Output, exitStatus: Int32) -> Int32 {
        guard let path = showing.page, let record = output.reporter.record else {
            return exitStatus
        }
        do {
            let page = try ReportPage(
                record, after: nil, cache: CacheCatalog(directory: output.directory),
                replaced: output.replaced, at: WallClock.now())
            try OutputFile.replace(path, with: page.html())
            return exitStatus
        } catch {
            StandardError.write("prefetch: \(error)")
            return 2
        }
    }
}
