import Hashing
package import PrefetchModel
import Scheduling
import Threading
package import Transfers
import URLParsing

/// A bucket of an S3-compatible service. Any thread may use it; a request blocks its thread.
package final class ObjectStorage: Sendable {
    package let location: ObjectLocation
    let endpoint: ObjectEndpoint
    private let options: ObjectOptions
    private let rules: Monitor<ServiceRules>
    private let wallClock: @Sendable () -> Timestamp
    /// The variable or setting with the authorities of the service; nil for the run's.
    private let authorityFile: String?
    private let keys: ObjectKeys
    private let client: ServiceClient

    /// Sets the storage up for the limits and routes of a run; nothing is sent.
    ///
    /// `variable` gives a variable of the environment, nil for an empty one, and `file` the
    /// contents of a file, nil if it cannot be read.
    package init(
        _ location: ObjectLocation, credentials choice: CredentialChoice,
        options: ObjectOptions = ObjectOptions(), transfers: TransferConfiguration,
        until deadline: ContinuousClock.Instant? = nil,
        variable: @escaping @Sendable (String) -> String?,
        file: @escaping @Sendable (String) -> [UInt8]?,
        wallClock: @escaping @Sendable () -> Timestamp
    ) throws {
        try CurlLibrary.load()
        let settings = ObjectSettings(variable: variable, file: file)
        try settings.check(for: location, choice)
        self.location = location
        self.options = options
        self.wallClock = wallClock
        authorityFile = settings.authorityFile
        endpoint = ObjectEndpoint(
            bucket: location.bucket, address: settings.address, region: settings.region,
            options.addressing == .auto ? settings.addressing : options.addressing)
        rules = Monitor(ServiceRules(isInHost: endpoint.isInHost))
        keys = ObjectKeys(
            choice: choice, fixed: settings.credentials,
            read: { ObjectSettings(variable: variable, file: file).credentials },
            process: settings.credentials == nil
                ? settings.process.map { CredentialProcess(command: $0.command) } : nil,
            service: MetadataService(
                transfers, until: deadline, variable: variable, file: file, wallClock: wallClock),
            wallClock: wallClock)
        // About half a minute for a service that restarts.
        client = ServiceClient(
            name: "\(location)",
            transfers: BlockingTransfers(
                transfers.forServices(authorityFile: settings.authorityFile), wallClock: wallClock),
            attempts: 8, backoff: Backoff(base: .milliseconds(500), ceiling: .seconds(20)),
            deadline: deadline)
    }

    /// Ends all requests soon, permanently. Any thread may call it.
    package func stop() {
        client.stop()
        keys.stop()
    }

    package var isStopped: Bool { client.isStopped }

    func name(of key: String) -> String {
        key.isEmpty ? "s3://\(location.bucket)" : "s3://\(location.bucket)/\(key)"
    }

    // MARK: Requests

    /// A request for an object, or for the bucket.
    struct Request {
        /// Empty for the bucket.
        let key: String
        var query: [(name: String, value: String)] = []
        var fields: [HeaderField] = []
        /// The content's; nil for none.
        var digest: ContentDigest?
        /// Whether it makes an object.
        var isOfNewObject = false
        /// Without a signature.
        var exchange = ServiceExchange()

        init(_ method: ServiceExchange.Method = .get, key: String) {
            self.key = key
            exchange.method = method
        }
    }

    private static let emptyDigest = SHA256Hasher().digest(
        of: UnsafeRawBufferPointer(start: nil, count: 0))

    /// Sends a request until it succeeds or fails permanently.
    func perform(_ request: Request) throws -> ServiceAnswer {
        var tried: Set<ObjectProblem.RequestChange> = []
        var used: ObjectCredentials?
        let (result, attempts) = try client.perform {
            used = try keys.current()
            return signed(request, by: used)
        } judge: { answer in
            guard !answer.isSuccess else { return .final }
            let problem = ObjectProblem(answer)
            if let change = problem.change, tried.insert(change).inserted,
                apply(change, to: answer, refusing: used)
            {
                return .outdated
            }
            return problem.isTransient ? .transient(isSlowDown: problem.isSlowDown) : .final
        }
        switch result {
        case .success(let answer):
            if answer.isSuccess { return answer }
            throw ObjectProblem(answer).error(request.key, of: self, attempts: attempts)
        case .failure(let failure): throw error(failure, request.key, attempts: attempts)
        }
    }

    /// Changes later requests.
    ///
    /// - Returns: whether the same one may succeed now.
    private func apply(
        _ change: ObjectProblem.RequestChange, to answer: ServiceAnswer,
        refusing used: ObjectCredentials?
    ) -> Bool {
        switch change {
        case .newKeys: keys.replace(used)
        case .clock: rules.withLock { $0.noteClock(of: answer) }
        case .contentDigest:
            rules.withLock { rules in
                rules.needsContentDigest = true
                return true
            }
        case .bucketInHost:
            rules.withLock { rules in
                rules.isInHost = endpoint.mayBeInHost
                return endpoint.mayBeInHost
            }
        }
    }

    private func signed(
        _ request: Request, by credentials: ObjectCredentials?
    ) -> TransferRequest {
        let rules = rules.withLock { $0 }
        var fields = request.fields + options.fields
        if request.isOfNewObject { fields += options.fieldsOfNewObjects }
        if rules.needsContentDigest, request.exchange.method == .put,
            let digest = ContentMD5.base64(of: request.exchange.content)
        {
            fields.append(HeaderField(name: "Content-MD5", value: digest))
        }
        if let date = rules.dateField(at: wallClock()) { fields.append(date) }
        let digest = request.digest ?? ObjectStorage.emptyDigest
        fields.append(HeaderField(name: "x-amz-content-sha256", value: "\(digest)"))
        if let token = credentials?.sessionToken {
            fields.append(HeaderField(name: "x-amz-security-token", value: token))
        }
        var exchange = request.exchange
        exchange.signature = credentials.map {
            (Credentials(user: $0.accessKey, password: $0.secretKey), endpoint.region)
        }
        return TransferRequest(
            to: endpoint.url(
                key: request.key, query: request.query, isInHost: rules.isInHost), fields: fields,
            exchange: exchange)
    }

    private func error(
        _ failure: TransferFailure, _ key: String, attempts: Int
    ) -> ObjectStorageError {
        let text = "\(name(of: key)): \(failure.message)"
        if failure.failure == ServiceExchange.shortFile || failure.reason == .tooLarge {
            return ObjectStorageError(kind: .damaged, description: text)
        }
        if failure.reason == .tls {
            return ObjectStorageError(
                description: text,
                hint: authorityFile.map { "AWS_CA_BUNDLE, or ca_bundle in ~/.aws/config, is \($0)" }
                    ?? "AWS_CA_BUNDLE or --cacert names the certificates of a private authority")
        }
        guard failure.isTransient else { return ObjectStorageError(description: text) }
        return ObjectStorageError(
            description: attempts > 1 ? "\(text), \(attempts) times" : text,
            hint: "is \(endpoint.base(isInHost: rules.withLock(\.isInHost))) the right endpoint? "
                + "AWS_ENDPOINT_URL_S3 sets it")
    }
}

extension ObjectSettings {
    /// - Throws: ``UserError`` when requests cannot be made with these settings.
    fileprivate func check(for location: ObjectLocation, _ choice: CredentialChoice) throws {
        if let address {
            let scheme = address.lowercased()
            guard scheme.hasPrefix("http://") || scheme.hasPrefix("https://"),
                !address.contains(where: { "@?#".contains($0) || $0.isWhitespace })
            else {
                throw UserError(
                    "the endpoint is not an http or https URL, or has user information or a query",
                    hint: "set AWS_ENDPOINT_URL_S3, like https://minio.example:9000")
            }
        }
        if choice == .auto, credentials == nil, let process {
            guard CredentialProcess.isTrusted(process.file) else {
                throw UserError(
                    .failed, process.file, "others may have written its credential_process",
                    hint: "chown it to yourself, and chmod go-w")
            }
        } else if choice == .auto, credentials == nil {
            throw UserError(
                .failed, "\(location)", "no credentials (profile '\(profile)')",
                hint: "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or write "
                    + "~/.aws/credentials; --sink-credentials metadata uses the machine's service")
        }
        if let credentials, choice == .auto, !credentials.arePrintable {
            throw UserError(
                .failed, "\(location)", "the keys have spaces, control or other characters",
                hint: "a line end may have been copied with them")
        }
        // Other characters would change the bytes that are signed.
        let isName = region.utf8.allSatisfy {
            $0.isLetter || $0.isDecimalDigit || "-_".utf8.contains($0)
        }
        guard isName else {
            throw UserError(.failed, "\(location)", "AWS_REGION is not a name of a region")
        }
    }
}
