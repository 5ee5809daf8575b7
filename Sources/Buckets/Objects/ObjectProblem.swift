internal import CXML
package import PrefetchModel

/// A response other than success.
struct ObjectProblem {
    private let answer: ServiceAnswer
    /// As `SlowDown`; empty for a response without one.
    private let code: String
    private let message: String
    private var status: Int { answer.status }

    init(_ answer: ServiceAnswer) {
        self.answer = answer
        let elements = ObjectElements(answer.body)
        code = elements["Code"] ?? ""
        message = elements["Message"] ?? ""
    }

    var isTransient: Bool {
        [408, 429, 500, 502, 503, 504].contains(status) || ObjectProblem.isTransient(code)
    }

    /// Whether a request with this error may succeed later.
    static func isTransient(_ code: String) -> Bool {
        ["RequestTimeout", "InternalError", "SlowDown", "OperationAborted"].contains(code)
    }

    var isSlowDown: Bool { status == 503 || status == 429 || code == "SlowDown" }

    /// A change to the requests that may satisfy the service.
    enum RequestChange: Hashable {
        case newKeys, clock, contentDigest, bucketInHost
    }

    var change: RequestChange? {
        let text = message.lowercased()
        let styles = ["virtual host", "virtual-host", "virtual style", "virtual-style"]
        if styles.contains(where: text.contains) { return .bucketInHost }
        switch code {
        case "ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired": return .newKeys
        case "RequestTimeTooSkewed", "RequestExpired": return .clock
        case "MissingContentMD5": return .contentDigest
        case "InvalidRequest", "InvalidArgument", "MissingParameter":
            return text.contains("content-md5") ? .contentDigest : nil
        // Alibaba, Tencent, Huawei.
        case "SecondLevelDomainForbidden", "PathStyleDomainForbidden", "VirtualHostDomainRequired":
            return .bucketInHost
        default: return nil
        }
    }

    func error(
        _ key: String, of storage: ObjectStorage, attempts: Int
    ) -> ObjectStorageError {
        var text = "\(storage.name(of: key)): the service answered \(status)"
        if !code.isEmpty { text += " \(code)" }
        if !message.isEmpty { text += " (\(message))" }
        if attempts > 1 { text += ", \(attempts) times" }
        var hint: String?
        // The region of the bucket.
        let region = answer.fields.first("x-amz-bucket-region")
        switch (status, code) {
        case _ where change == .bucketInHost:
            hint =
                "the service wants the bucket in the host's name: --sink-addressing host, or "
                + "addressing_style = virtual in ~/.aws/config; AWS_ENDPOINT_URL_S3 needs a name"
        case _ where change == .newKeys:
            hint = "the session token has expired, and no newer keys were found"
        case (_, "NoSuchBucket"): hint = "create the bucket first; `prefetch` does not"
        case (_, "RequestTimeTooSkewed"): hint = "set the clock of this machine"
        case (_, "SignatureDoesNotMatch"), (_, "InvalidAccessKeyId"):
            hint = "check the secret key, and AWS_REGION (now \(storage.endpoint.region))"
        case (300...399, _) where region == nil && code.isEmpty:
            // The redirect is not followed.
            hint = answer.fields.first("location").map {
                "the endpoint redirects to \(RedactedURL($0))"
            }
        case (301, _), (307, _), (_, "AuthorizationHeaderMalformed"), (_, "PermanentRedirect"):
            hint =
                region.map { "the bucket is in \($0): set AWS_REGION" }
                ?? "set AWS_REGION to the region of the bucket"
        case (403, _): hint = "these credentials may not do that"
        default: break
        }
        let kind: ObjectStorageError.Cause =
            status == 404
            ? .missing
            : ["XAmzContentSHA256Mismatch", "BadDigest"].contains(code) ? .damaged : .other
        return ObjectStorageError(kind: kind, description: text, hint: hint)
    }
}

/// A failure of a request, after all retries.
package struct ObjectStorageError: ReportableError, CustomStringConvertible {
    package enum Cause: Sendable {
        /// The object, the bucket or the upload does not exist.
        case missing
        case cancelled
        case late
        /// The bytes differ from their digest.
        case damaged
        case other
    }

    package private(set) var kind = Cause.other
    /// The subject and what happened, without a final stop.
    package let description: String
    package private(set) var hint: String?

    /// Whether one object or database is to blame, and others may be fine.
    var isOfOneObject: Bool { kind == .missing || kind == .damaged }

    package var userError: UserError {
        UserError(
            kind == .cancelled || kind == .late ? .cancelled : .failed, description, hint: hint)
    }
}

/// The elements of a service's XML document that hold text.
struct ObjectElements {
    let all: [(parent: String, name: String, text: String)]
    let isWellFormed: Bool

    init(_ bytes: [UInt8]) {
        let box = ElementList()
        isWellFormed = bytes.withUnsafeBytes { bytes in
            guard let start = bytes.baseAddress else { return false }
            return withExtendedLifetime(box) {
                celements_read(
                    start.assumingMemoryBound(to: CChar.self), bytes.count, noteElement,
                    Unmanaged.passUnretained(box).toOpaque())
            }
        }
        all = box.elements
    }

    /// The text of the first element with this name.
    subscript(name: String) -> String? { all.first { $0.name == name }?.text }

    /// The objects of a listing: their keys and sizes.
    var objects: [(key: String, size: Int)] {
        var objects: [(key: String, size: Int)] = []
        var key: String?
        for (parent, name, text) in all where parent == "Contents" {
            switch name {
            case "Key": key = text
            case "Size":
                if let found = key, let size = Int(text) { objects.append((found, size)) }
                key = nil
            default: break
            }
        }
        return objects
    }
}

private final class ElementList {
    var elements: [(parent: String, name: String, text: String)] = []
}

private func noteElement(
    _ parent: UnsafePointer<CChar>, _ name: UnsafePointer<CChar>, _ text: UnsafePointer<CChar>,
    _ count: Int, _ context: UnsafeMutableRawPointer
) {
    let text = String(decoding: UnsafeRawBufferPointer(start: text, count: count), as: UTF8.self)
    Unmanaged<ElementList>.fromOpaque(context).takeUnretainedValue().elements.append(
        (String(cString: parent), String(cString: name), text))
}
