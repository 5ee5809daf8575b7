import PrefetchModel

/// The place of a bucket's name in URLs.
package enum BucketAddressing: String, CaseIterable, Sendable {
    /// In the host of Amazon's service; in the path of others, unless one refuses that.
    case auto
    /// `https://host/bucket/key`.
    case path
    /// `https://bucket.host/key`.
    case host
}

/// The server of a bucket.
struct ObjectEndpoint {
    let region: String
    /// Whether the bucket is in the host's name at first.
    let isInHost: Bool
    /// Whether it may be there where the user has not chosen.
    let mayBeInHost: Bool
    private let bucket: String
    private let scheme: Substring
    /// Host and perhaps port and path, without a final slash.
    private let place: Substring

    /// `address` is the URL of an S3-compatible service; nil for Amazon's.
    init(
        bucket: String, address: String?, region: String, _ addressing: BucketAddressing = .auto
    ) {
        self.region = region
        self.bucket = bucket
        let isAmazon = address == nil
        var address = (address ?? "https://s3.\(region).\(ObjectEndpoint.domain(of: region))")[...]
        while address.hasSuffix("/") { address.removeLast() }
        let start = address.firstRange(of: "://")?.upperBound ?? address.startIndex
        scheme = address[..<start]
        place = address[start...]
        // Amazon's certificate has one level of names.
        let isName = !bucket.contains(".") && bucket == bucket.lowercased()
        isInHost = addressing == .host || addressing == .auto && isAmazon && isName
        let host = place.prefix { !":/".contains($0) }
        // An address has no names below it.
        let isAddress = host.hasPrefix("[") || host.allSatisfy { $0 == "." || $0.isNumber }
        mayBeInHost = addressing == .auto && !isAddress && isName
    }

    private static func domain(of region: String) -> String {
        region.hasPrefix("cn-") ? "amazonaws.com.cn" : "amazonaws.com"
    }

    /// The beginning of all URLs: it ends with the bucket's path, or begins with its host.
    func base(isInHost: Bool) -> String {
        isInHost ? "\(scheme)\(bucket).\(place)" : "\(scheme)\(place)/\(bucket)"
    }

    /// The URL of an object, or of the bucket for an empty key. All but unreserved characters are
    /// encoded (RFC 3986 §2.3), as Signature Version 4 does.
    func url(key: String, query: [(name: String, value: String)], isInHost: Bool) -> String {
        let url = base(isInHost: isInHost) + "/" + key.utf8.percentEncoded(except: "-._~/")
        let pairs = query.sorted { $0.name < $1.name }.map { name, value in
            [name, value].map { $0.utf8.percentEncoded(except: "-._~") }.joined(separator: "=")
        }
        return pairs.isEmpty ? url : "\(url)?\(pairs.joined(separator: "&"))"
    }
}

/// A bucket and a prefix of its keys: `s3://BUCKET/PREFIX`.
package struct ObjectLocation: Hashable, Sendable, CustomStringConvertible {
    let bucket: String
    /// Without slashes at its ends; empty for the whole bucket.
    package let prefix: String

    /// Nil for any other text.
    package init?(_ text: String) {
        let scheme = "s3://"
        guard text.prefix(scheme.count).lowercased() == scheme else { return nil }
        let parts = text.dropFirst(scheme.count).split(
            separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard let bucket = parts.first, (1...255).contains(bucket.utf8.count),
            bucket.utf8.allSatisfy({
                $0.isLetter || $0.isDecimalDigit || "-._".utf8.contains($0)
            })
        else { return nil }
        self.bucket = String(bucket)
        var prefix = parts.count > 1 ? parts[1] : ""
        while prefix.hasPrefix("/") { prefix.removeFirst() }
        while prefix.hasSuffix("/") { prefix.removeLast() }
        // A key has 1,024 bytes at most, and dots would be taken for folders.
        guard prefix.utf8.count <= 800, prefix.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }),
            !prefix.split(separator: "/", omittingEmptySubsequences: false).contains(where: {
                $0 == "." || $0 == ".." || $0.isEmpty && !prefix.isEmpty
            })
        else { return nil }
        self.prefix = String(prefix)
    }

    package var description: String {
        prefix.isEmpty ? "s3://\(bucket)" : "s3://\(bucket)/\(prefix)"
    }

    /// The key of an object by its name below the prefix.
    package func key(_ name: String) -> String { prefix.isEmpty ? name : "\(prefix)/\(name)" }
}
