import ArgumentParser
import CacheStorage
import Manifests
import Pipeline
import PrefetchModel
import Reporting

// Enumerations of other modules that are values of flags

extension CountedFailures: ExpressibleByArgument {}
extension EncodingEffort: ExpressibleByArgument {}
extension FailureReason: ExpressibleByArgument {}
extension FileCheck: ExpressibleByArgument {}
extension HostRules.Pacing: ExpressibleByArgument {}
extension ListSelection.Order: ExpressibleByArgument {}
extension MetadataWriter.Durability: ExpressibleByArgument {}
extension OtherFormats: ExpressibleByArgument {}
extension Recipe.Animation: ExpressibleByArgument {}
extension Recipe.Encoding: ExpressibleByArgument {}
extension Recipe.Stripping: ExpressibleByArgument {}
extension RefreshMode: ExpressibleByArgument {}
extension RunReporter.SummaryStyle: ExpressibleByArgument {}
extension SnapshotRule: ExpressibleByArgument {}
extension SourceCheck: ExpressibleByArgument {}

// `get` starts once per image. The parser's own implementation would search every type of the
// program first.
extension ManifestFormat: ExpressibleByArgument {
    package static var allValueStrings: [String] { allCases.map { $0.rawValue } }
    package static var allValueDescriptions: [String: String] { [:] }
    package var defaultValueDescription: String { rawValue }
}

extension MediaTypes: ExpressibleByArgument {
    package init?(argument: String) { self.init(argument) }
}

extension StatusSet: ExpressibleByArgument {
    package init?(argument: String) { self.init(argument) }
}

extension RequestMethod: ExpressibleByArgument {}

extension ImageFormat: ExpressibleByArgument {
    /// Takes the format's name or the usual extension of its files.
    package init?(argument: String) {
        let name = argument.lowercased()
        guard
            let format = ImageFormat(rawValue: name)
                ?? ImageFormat.allCases.first(where: { $0.fileExtension == name })
        else { return nil }
        self = format
    }
}
