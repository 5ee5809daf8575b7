/// The server of a bucket.
package struct ObjectEndpoint: Hashable, Sendable {
    /// Scheme, host and perhaps port and path, without a final slash. It ends with the bucket's
    /// path, or begins with its host.
    let base: String
    package let region: String

    /// The endpoint of a bucket.
    ///
    /// - Parameters:
    ///   - bucket: its name.
    ///   - address: the URL of an S3-compatible service; nil for Amazon's.
    ///   - region: the region that signatures name.
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
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."),
                UInt8(ascii: "_"), UInt8(ascii: "~"):
                result.append(byte)
            case UInt8(ascii: "/") where keepsSlashes: result.append(byte)
            default: result += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: result, as: UTF8.self)
    }
}
