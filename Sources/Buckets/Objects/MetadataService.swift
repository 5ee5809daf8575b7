internal import CCurl
import Glibc
import PrefetchModel
import Reporting

/// The temporary credentials that a machine, a container or a pod is given.
///
/// Asks the container's endpoint where the environment names one, else the machine's service by
/// its second version (IMDSv2), which needs a token.
struct MetadataService: Sendable {
    private enum Place {
        case container(url: String, authorization: String?)
        case machine(String)
        /// Switched off by the user.
        case none
    }

    private let place: Place

    /// - Parameters:
    ///   - variable: the value of a variable of the environment; nil for none and for an empty one.
    ///   - file: the contents of a file; nil if it cannot be read.
    init(variable: (String) -> String?, file: (String) -> [UInt8]?) {
        let token =
            variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE").flatMap(file).map {
                String(decoding: $0, as: UTF8.self)
            } ?? variable("AWS_CONTAINER_AUTHORIZATION_TOKEN")
        let authorization = token?.split(whereSeparator: \.isNewline).first.map(String.init)
        if let path = variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") {
            place = .container(url: "http://169.254.170.2" + path, authorization: authorization)
        } else if let url = variable("AWS_CONTAINER_CREDENTIALS_FULL_URI") {
            place = .container(url: url, authorization: authorization)
        } else if variable("AWS_EC2_METADATA_DISABLED")?.lowercased() == "true" {
            place = .none
        } else {
            var base =
                variable("AWS_EC2_METADATA_SERVICE_ENDPOINT") ?? "http://169.254.169.254"
            while base.hasSuffix("/") { base.removeLast() }
            place = .machine(base)
        }
    }

    /// Asks for credentials.
    ///
    /// - Throws: when the service is not there, or gives none.
    func credentials(
        isStopped: @escaping () -> Bool
    ) throws(ObjectStorageError) -> ObjectCredentials {
        let answer: [UInt8]
        switch place {
        case .none: throw failure("switched off by AWS_EC2_METADATA_DISABLED")
        case .container(let url, let authorization):
            answer = try ask(
                url, fields: authorization.map { ["Authorization: \($0)"] } ?? [], isStopped)
        case .machine(let base):
            let token = try ask(
                base + "/latest/api/token", .put,
                fields: ["X-aws-ec2-metadata-token-ttl-seconds: 21600"], isStopped)
            let fields = [
                "X-aws-ec2-metadata-token: " + String(decoding: token, as: UTF8.self)
            ]
            let roles = base + "/latest/meta-data/iam/security-credentials/"
            let role = String(
                decoding: try ask(roles, fields: fields, isStopped).prefix { $0 > 0x20 },
                as: UTF8.self)
            answer = try ask(roles + role, fields: fields, isStopped)
        }
        guard let members = JSONStrings.members(of: answer),
            let accessKey = members["AccessKeyId"], let secretKey = members["SecretAccessKey"]
        else { throw failure("gives no keys") }
        let credentials = ObjectCredentials(
            accessKey: accessKey, secretKey: secretKey, sessionToken: members["Token"],
            expiresAt: members["Expiration"].flatMap { text in
                Array(text.utf8).withUnsafeBytes { Timestamp(text: $0) }
            })
        guard credentials.arePrintable else { throw failure("gives keys with control characters") }
        return credentials
    }

    private func ask(
        _ url: String, _ method: HTTPExchange.Method = .get, fields: [String],
        _ isStopped: @escaping () -> Bool
    ) throws(ObjectStorageError) -> [UInt8] {
        guard let handle = ccurl_easy_init() else { throw failure("libcurl has no memory") }
        defer { ccurl_easy_cleanup(handle) }
        var request = HTTPExchange.Request(
            method: method, url: url, fields: fields,
            limits: HTTPExchange.Limits(
                connectTimeout: .seconds(2), stallTimeout: .seconds(5), totalTimeout: .seconds(10)))
        request.output = .memory(limit: 64 << 10)
        request.usesProxy = false
        var last = ""
        for attempt in 1...MetadataService.attempts {
            switch HTTPExchange.perform(request, on: handle, isStopped: isStopped) {
            case .response(let response) where response.isSuccess: return response.body
            case .response(let response):
                last = "answered \(response.status)"
                guard response.status >= 500 else { throw failure(last) }
            case .failed(let failed):
                if case .stopped = failed.cause {
                    throw ObjectStorageError(.cancelled, failed.text)
                }
                last = failed.text
            }
            if attempt < MetadataService.attempts { usleep(MetadataService.pause) }
        }
        throw failure(last)
    }

    private static let attempts = 3
    /// Microseconds between two attempts.
    private static let pause: UInt32 = 200_000

    private func failure(_ text: String) -> ObjectStorageError {
        let name =
            switch place {
            case .container(let url, _): " at \(RedactedURL(url))"
            case .machine(let base): " at \(RedactedURL(base))"
            case .none: ""
            }
        return ObjectStorageError(
            .other, "the metadata service\(name): \(text)",
            hint: "without --sink-credentials metadata, keys come from the environment or a file")
    }
}
