import ArgumentParser
import Manifests
import PrefetchModel
import URLParsing

/// Flags about the manifests that a command reads.
struct InputOptions: ParsableArguments {
    @Option(RunFlags.format) var format: ManifestFormat
    @Option(RunFlags.baseURL) var baseURL: String?

    func validate() throws {
        guard let baseURL else { return }
        do throws(URLParsingError) {
            _ = try URLParser(baseURL: baseURL)
        } catch {
            switch error {
            case .invalid:
                throw ValidationError(
                    "--base-url takes an absolute http or https URL, like https://example.com/a/")
            case .missingLibrary:
                // Not a usage error. The manifest's reader reports it.
                break
            }
        }
    }

    /// `variants` are the run's; entries are checked against them.
    func manifestOptions(variants: VariantSet? = nil) -> ManifestOptions {
        ManifestOptions(format: format, baseURL: baseURL, variants: variants)
    }
}
