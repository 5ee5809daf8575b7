import CacheStorage
import Codecs
package import Pipeline
import PrefetchModel
import Transfers
import URLParsing

extension Diagnosis {
    package static func openFiles(available: Int?, _ configuration: RunConfiguration) -> Diagnosis {
        guard let available else { return .unknown(.openFiles, "the system does not say") }
        let budget = DescriptorBudget(
            codecWorkers: configuration.codecWorkers, transfers: configuration.maximumTransfers)
        let remedy = "raise the limit: ulimit -n \(2 * budget.total), or LimitNOFILE= of systemd"
        guard let fitted = budget.fitted(to: available) else {
            return .wrong(
                .openFiles,
                "\(available) left, too few for any run, which needs \(RunConfiguration.minimumDescriptors)",
                remedy: remedy)
        }
        guard fitted == budget else {
            return .wrong(
                .openFiles,
                """
                \(available) left, and \(budget.total) are needed for \
                \(configuration.maximumTransfers) transfers at once (--jobs): a run makes do with \(fitted.transfers)
                """, remedy: remedy)
        }
        return .ok(
            .openFiles,
            "\(available) left; \(configuration.maximumTransfers) transfers at once need \(budget.total)"
        )
    }

    /// Checks whether the libraries that are loaded on first use can be loaded.
    package static func libraries() -> Diagnosis {
        do {
            let curl = try CurlVersion.text()
            // The line of a missing library gives the reason.
            if let missing = CodecLibraries.optional.first(where: {
                $0.contains("cannot be loaded")
            }) {
                let images =
                    missing.hasPrefix("libavif") ? "AVIF images" : "images with colour profiles"
                return .wrong(.libraries, missing, remedy: "install it; \(images) fail without it")
            }
            return .ok(.libraries, "libcurl \(curl), SQLite \(StorageVersions.sqlite)")
        } catch {
            return .wrong(
                .libraries, "libcurl cannot be loaded: \(error.message)", remedy: error.hint)
        }
    }
}
