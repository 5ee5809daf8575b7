import PrefetchModel

/// The server of a bucket.
struct ObjectEndpoint {
    /// Scheme, host and perhaps port and path, without a final slash. It ends with the bucket's
    /// path, or begins with its host.
    let base: String
    let region: String

    /// The endpoint of a bucket. `address` is the URL of an S3-compatible service; nil for
    /// Amazon's.
    init(bucket: String, address: String?, region: String) {
        self.region = region
        if let address {
            var address = address[...]
            while address.hasSuffix("/") { address.removeLast() }
            base = "\(address)/\(bucket)"
        } else if bucket.contains(".") || bucket != bucket.lowercased() {
            // The certificate has one level of names.
            base = "https://s3.\(region).\(ObjectEndpoint.domain(of: region))/\(bucket)"
        } else {
            base = "https://\(bucket).s3.\(region).\(ObjectEndpoint.domain(of: region))"
        }
    }

    private static func domain(of region: String) -> String {
        region.hasPrefix("cn-") ? "amazonaws.com.cn" : "amazonaws.com"
    }

    /// The URL of an object, or of the bucket for an empty key. The query is sorted and encoded as
    /// signatures need it.
    func url(key: String, query: [(name: String, value: String)]) -> String {
        var url = base + "/" + ObjectEndpoint.encoded(key, keepsSlashes: true)
        let pairs = query.sorted { $0.name < $1.name }.map { name, value in
            let value = ObjectEndpoint.encoded(value, keepsSlashes: false)
            return "\(ObjectEndpoint.encoded(name, keepsSlashes: false))=\(value)"
        }
        if !pairs.isEmpty { url += "?" + pairs.joined(separator: "&") }
        return url
    }

    /// Percent-encodes all but unreserved characters (RFC 3986 §2.3), as Signature Version 4 does.
    private static func encoded(_ text: String, keepsSlashes: Bool) -> String {
        var result: [UInt8] = []
        let digits = Array("0123456789ABCDEF".utf8)
        let plain = Set((keepsSlashes ? "-._~/" : "-._~").utf8)
        for byte in text.utf8 {
            if byte.isLetter || byte.isDecimalDigit || plain.contains(byte) {
                result.append(byte)
            } else {
                result += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: result, as: UTF8.self)
    }
}
