public import ArgumentParser
import CacheStorage
import Decoding
import Manifests
import Pipeline
import PrefetchModel
import Reporting
import URLParsing

// Values of flags that other modules have

extension CountedFailures: ExpressibleByArgument {}
extension EncodingEffort: ExpressibleByArgument {}
extension FailureReason: ExpressibleByArgument {}
extension FileCheck: ExpressibleByArgument {}
extension HostRules.Pacing: ExpressibleByArgument {}
extension ListSelection.Order: ExpressibleByArgument {}
extension MetadataWriter.Durability: ExpressibleByArgument {}
extension OtherFormats: ExpressibleByArgument {}
extension SandboxMode: ExpressibleByArgument {}
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

extension Duration: @retroactive ExpressibleByArgument {
    public init?(argument: String) { self.init(quantity: argument) }
    public var defaultValueDescription: String { quantityDescription }
}

extension ByteCount: ExpressibleByArgument {
    package init?(argument: String) { self.init(quantity: argument) }
    package var defaultValueDescription: String { quantityDescription }
}

extension Share: ExpressibleByArgument {
    package init?(argument: String) { self.init(percentage: argument) }
}

extension RGBColor: ExpressibleByArgument {
    package init?(argument: String) { self.init(text: argument) }
    package var defaultValueDescription: String { self == .white ? "white" : "#\(self)" }
}

extension FileMode: ExpressibleByArgument {
    package init?(argument: String) { self.init(text: argument) }
    package static var allValueStrings: [String] { ["0600", "0640", "0644"] }
}

extension FailureTolerance: ExpressibleByArgument {
    /// Takes a number of failures, `10`, or a percentage of the entries, `5%`.
    package init?(argument: String) {
        if argument.hasSuffix("%") {
            guard let percent = Double(argument.dropLast()), (0...100).contains(percent) else {
                return nil
            }
            self = .percent(percent)
        } else {
            guard let count = Int(argument), count >= 0 else { return nil }
            self = .count(count)
        }
    }

    package var defaultValueDescription: String {
        switch self {
        case .count(let count): "\(count)"
        case .percent(let percent): "\(percent)%"
        }
    }
}

extension StartOrder: ExpressibleByArgument {
    /// Takes `fifo`, `lifo`, `random`, or `random=SEED` with an integer.
    package init?(argument: String) {
        switch argument {
        case "fifo": self = .fifo
        case "lifo": self = .lifo
        // Short enough to be typed again.
        case "random": self = .random(seed: UInt64.random(in: 1..<1_000_000_000))
        default:
            guard argument.hasPrefix("random="), let seed = UInt64(argument.dropFirst(7)) else {
                return nil
            }
            self = .random(seed: seed)
        }
    }

    package static var allValueStrings: [String] { ["fifo", "lifo", "random", "random=SEED"] }
    static var defaultCompletionKind: CompletionKind { .list(["fifo", "lifo", "random"]) }

    package var defaultValueDescription: String {
        switch self {
        case .fifo: "fifo"
        case .lifo: "lifo"
        case .random(let seed): "random=\(seed)"
        }
    }
}

extension IgnoredQuery: ExpressibleByArgument {
    package init?(argument: String) {
        self.init(argument)
    }
}

extension HostName: ExpressibleByArgument {
    /// Takes a host or an origin. Nil for a URL with a path or query, which may be meant as one
    /// image.
    package init?(argument: String) {
        let parts = argument.lowercased().split(separator: "://", maxSplits: 1)
        var authority = parts.last ?? ""
        if parts.count == 2, authority.hasSuffix("/") { authority.removeLast() }
        guard !authority.isEmpty, !authority.contains(where: { "/?# ".contains($0) }) else {
            return nil
        }
        guard parts.count == 2 else {
            self.init(String(authority))
            return
        }
        let origin = "\(parts[0])://\(authority)"
        // The cache stores origins without default ports and with ASCII names. Any other text is
        // looked up unchanged, as is every text if libcurl can't be loaded.
        let url = try? URLParser().parse("\(origin)/".utf8)
        self.init(url?.withoutCredentials.origin ?? origin)
    }
}
