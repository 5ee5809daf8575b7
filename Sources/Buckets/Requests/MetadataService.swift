import PrefetchModel
import Scheduling
import Transfers

/// The temporary credentials that a machine, a container or a pod is given.
///
/// Requests the container's endpoint where the environment names one, else the machine's service by
/// its second version (IMDSv2), which needs a token.
struct MetadataService: Sendable {
    private enum ServiceAddress {
        case container(url: String, authorization: String?)
        case machine(String)
        /// Switched off by the user.
        case none
    }

    private let place: ServiceAddress
    private let client: ServiceClient

    /// Takes a run's settings without proxies and rate limit; for the rest see ``ObjectStorage``.
    init(
        _ transfers: TransferConfiguration, until deadline: ContinuousClock.Instant?,
        variable: (String) -> String?, file: (String) -> [UInt8]?,
        wallClock: @escaping @Sendable () -> Timestamp
    ) {
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
        var settings = transfers.forServices()
        settings.requests.proxies = ProxySettings()
        // Its usual address is one of IPv4.
        settings.requests.addressFamily = .any
        settings.rateLimit = nil
        settings.limits.connectTimeout = .seconds(2)
        settings.limits.stallTimeout = .seconds(5)
        settings.limits.totalTimeout = .seconds(10)
        client = ServiceClient(
            name: "the metadata service",
            transfers: BlockingTransfers(settings, wallClock: wallClock), attempts: 3,
            backoff: Backoff(base: .milliseconds(400)), deadline: deadline)
    }

    func stop() { client.stop() }

    func credentials() throws -> ObjectCredentials {
        let answer: [UInt8]
        switch place {
        case .none: throw failure("switched off by AWS_EC2_METADATA_DISABLED")
        case .container(let url, let authorization):
            answer = try request(
                url,
                authorization.map { [HeaderField(name: "Authorization", value: $0)] } ?? [])
        case .machine(let base):
            let token = try request(
                base + "/latest/api/token",
                [HeaderField(name: "X-aws-ec2-metadata-token-ttl-seconds", value: "21600")], .put)
            let fields = [
                HeaderField(
                    name: "X-aws-ec2-metadata-token", value: String(decoding: token, as: UTF8.self))
            ]
            let roles = base + "/latest/meta-data/iam/security-credentials/"
            let role = String(
                decoding: try request(roles, fields).prefix { $0 > 0x20 }, as: UTF8.self)
            answer = try request(roles + role, fields)
        }
        guard let credentials = ObjectCredentials(json: answer) else {
            throw failure("gives no keys")
        }
        guard credentials.arePrintable else { throw failure("gives keys with control characters") }
        return credentials
    }

    private func request(
        _ url: String, _ fields: [HeaderField], _ method: ServiceExchange.Method = .get
    ) throws -> [UInt8] {
        var exchange = ServiceExchange()
        exchange.method = method
        exchange.output = .memory(limit: 64 << 10)
        let (result, _) = try client.perform {
            TransferRequest(to: url, fields: fields, exchange: exchange)
        } judge: { answer in
            answer.status >= 500 ? .transient(isSlowDown: false) : .final
        }
        switch result {
        case .success(let answer):
            guard answer.isSuccess else { throw failure("answered \(answer.status)") }
            return answer.body
        case .failure(let failure):
            // Its time limits belong to no flag.
            throw self.failure(failure.isTimeout ? "no response" : failure.message)
        }
    }

    private func failure(_ text: String) -> ObjectStorageError {
        let name =
            switch place {
            case .container(let url, _): " at \(RedactedURL(url))"
            case .machine(let base): " at \(RedactedURL(base))"
            case .none: ""
            }
        return ObjectStorageError(
            description: "the metadata service\(name): \(text)",
            hint: "without --sink-credentials metadata, keys come from the environment or a file")
    }
}
