import HTTPSemantics
import PrefetchModel

/// The user's choices about a bucket.
package struct ObjectOptions: Sendable {
    package var addressing = BucketAddressing.auto
    /// The encryption of new objects: `AES256`, `aws:kms` or `aws:kms:KEY`; nil for the bucket's.
    package var encryption: String?
    /// The storage class of new objects; nil for the bucket's.
    package var storageClass: String?
    /// Whether the requester pays for requests and transfers.
    package var paysRequests = false

    package init() {}

    /// The fields of all requests.
    var fields: [HeaderField] {
        paysRequests ? [HeaderField(name: "x-amz-request-payer", value: "requester")] : []
    }

    /// The fields of requests that make objects.
    var fieldsOfNewObjects: [HeaderField] {
        var fields: [HeaderField] = []
        if let encryption {
            let name = "x-amz-server-side-encryption"
            let key = encryption.firstRange(of: "aws:kms:").map { encryption[$0.upperBound...] }
            fields.append(HeaderField(name: name, value: key == nil ? encryption : "aws:kms"))
            if let key {
                fields.append(HeaderField(name: name + "-aws-kms-key-id", value: String(key)))
            }
        }
        if let storageClass {
            fields.append(HeaderField(name: "x-amz-storage-class", value: storageClass))
        }
        return fields
    }
}

/// The rules of a service that its responses have shown, for all later requests.
struct ServiceRules {
    /// Whether the bucket is in the host's name.
    var isInHost: Bool
    /// Whether bodies need `Content-MD5`: the bucket has Object Lock.
    var needsContentDigest = false
    /// The service's clock minus ours; nil if they agree.
    var clockDifference: Duration?

    /// Services tolerate smaller differences.
    private static let leastDifference = Duration.seconds(60)

    /// Takes the service's clock from a response.
    ///
    /// - Returns: whether it differs from ours.
    mutating func noteClock(of answer: ServiceAnswer) -> Bool {
        let now = answer.response.receivedAt
        guard let date = answer.fields.first("date"),
            let time = HTTPDate.parse(date, relativeTo: now)
        else { return false }
        let difference = time.timeSince(now)
        guard max(difference, .zero - difference) > ServiceRules.leastDifference else {
            return false
        }
        clockDifference = difference
        return true
    }

    /// The field with the time of a request, if that must not be our own.
    func dateField(at now: Timestamp) -> HeaderField? {
        clockDifference.map {
            let text = now.advanced(by: $0).description.filter { $0 != "-" && $0 != ":" }
            return HeaderField(name: "X-Amz-Date", value: text)
        }
    }
}
