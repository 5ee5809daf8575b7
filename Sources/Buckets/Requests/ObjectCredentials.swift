import PrefetchModel
import Threading

/// The keys that sign requests.
struct ObjectCredentials: Equatable, Sendable {
    let accessKey: String
    let secretKey: String
    /// Nil for permanent keys.
    let sessionToken: String?
    /// Nil for permanent keys.
    var expiresAt: Timestamp?

    /// Whether they can stand in a header.
    var arePrintable: Bool {
        [accessKey, secretKey, sessionToken ?? "x"].allSatisfy { text in
            !text.isEmpty && text.utf8.allSatisfy { (0x21...0x7E).contains($0) }
        }
    }
}

package enum CredentialChoice: String, CaseIterable, Sendable {
    /// The environment, else the files of Amazon's tools.
    case auto
    /// The service of the machine, the container or the pod.
    case metadata
    /// Requests are not signed.
    case none
}

/// The settings of Amazon's tools: the environment, `~/.aws/config` and `~/.aws/credentials`.
struct ObjectSettings {
    let address: String?
    let region: String
    let authorityFile: String?
    let addressing: BucketAddressing
    let profile: String
    /// Nil without keys.
    let credentials: ObjectCredentials?
    /// The program that gives keys where no other place does, and the file that names it.
    let process: (command: String, file: String)?

    /// Reads the settings from the sources of ``ObjectStorage``.
    init(variable: (String) -> String?, file: (String) -> [UInt8]?) {
        profile = variable("AWS_PROFILE") ?? variable("AWS_DEFAULT_PROFILE") ?? "default"
        let folder = variable("HOME").map { "\($0)/.aws" }
        func section(_ name: String, _ path: String?) -> [String: String] {
            let bytes = path.flatMap(file)
            return bytes.map { ObjectSettings.section(name, in: $0) } ?? [:]
        }
        // The settings of S3 stand indented below its name.
        func nested(_ name: String) -> String { "s3.\(name)" }
        let configurationFile = variable("AWS_CONFIG_FILE") ?? folder.map { "\($0)/config" }
        var configuration = section("profile \(profile)", configurationFile)
        if configuration.isEmpty, profile == "default" {
            configuration = section(profile, configurationFile)
        }
        let keyFile =
            variable("AWS_SHARED_CREDENTIALS_FILE") ?? folder.map { "\($0)/credentials" }
        let keys = section(profile, keyFile)
        let programs = [(keys, keyFile), (configuration, configurationFile)]
        process =
            programs.lazy.compactMap { settings, path in
                guard let command = settings["credential_process"], let path else { return nil }
                return (command, path)
            }.first
        let services =
            configuration["services"].map { section("services \($0)", configurationFile) } ?? [:]
        address =
            variable("AWS_ENDPOINT_URL_S3") ?? variable("AWS_ENDPOINT_URL")
            ?? services[nested("endpoint_url")] ?? configuration["endpoint_url"]
        let style = configuration[nested("addressing_style")]
        addressing = style == "virtual" ? .host : style == "path" ? .path : .auto
        region =
            variable("AWS_REGION") ?? variable("AWS_DEFAULT_REGION") ?? configuration["region"]
            ?? "us-east-1"
        authorityFile = variable("AWS_CA_BUNDLE") ?? configuration["ca_bundle"]
        let names = ["aws_access_key_id", "aws_secret_access_key", "aws_session_token"]
        let sources = [
            names.map { variable($0.uppercased()) }, names.map { keys[$0] },
            names.map { configuration[$0] },
        ]
        credentials =
            sources.lazy.compactMap { source in
                guard let accessKey = source[0], let secretKey = source[1] else { return nil }
                return ObjectCredentials(
                    accessKey: accessKey, secretKey: secretKey, sessionToken: source[2])
            }.first
    }

    /// The settings of a section: lines `name = value` below `[section]`. Comments begin with `#`
    /// or `;`. Indented lines belong to the setting above them, and are `setting.name` here.
    private static func section(_ name: String, in bytes: [UInt8]) -> [String: String] {
        var settings: [String: String] = [:]
        var isWanted = false
        var parent = ""
        for line in String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isNewline) {
            let content = line.drop(while: \.isWhitespace)
            guard let first = content.first, first != "#", first != ";" else { continue }
            let isNested = content.startIndex > line.startIndex
            if first == "[", !isNested {
                let title = line.dropFirst().prefix { $0 != "]" }
                isWanted = title.split(separator: " ").joined(separator: " ") == name
            } else if isWanted, let equals = line.firstIndex(of: "=") {
                let value = line[line.index(after: equals)...].trimmed
                let name = line[..<equals].trimmed.lowercased()
                if !isNested { parent = name }
                settings[isNested ? "\(parent).\(name)" : name] = value.isEmpty ? nil : value
            }
        }
        return settings
    }
}

extension Substring {
    fileprivate var trimmed: String {
        var text = self
        while text.first?.isWhitespace == true { text.removeFirst() }
        while text.last?.isWhitespace == true { text.removeLast() }
        return String(text)
    }
}

/// The keys that sign a storage's requests. Temporary ones are renewed before they expire.
struct ObjectKeys: Sendable {
    private struct Temporary {
        /// The last keys of the metadata service.
        var credentials: ObjectCredentials?
        /// No new ones are requested before, while the last ones are valid.
        var nextRenewal: Timestamp?

        /// The credentials, unless new ones are due.
        func current(at now: Timestamp) -> ObjectCredentials? {
            guard let credentials else { return nil }
            guard let end = credentials.expiresAt,
                end <= now.advanced(by: ObjectKeys.renewalTime)
            else { return credentials }
            return now < end && now < nextRenewal ?? .distantPast ? credentials : nil
        }
    }

    private let choice: CredentialChoice
    /// The keys of the environment or a file, as they were read last.
    private let fixed: Monitor<ObjectCredentials?>
    /// Reads these keys again.
    private let read: @Sendable () -> ObjectCredentials?
    private let service: MetadataService
    /// Nil unless a program made the keys.
    private let process: CredentialProcess?
    private let wallClock: @Sendable () -> Timestamp
    private let temporary = Monitor(Temporary())
    /// Held while new keys are requested.
    private let renewal = Monitor(())

    /// Temporary credentials are renewed this long before they expire.
    private static let renewalTime = Duration.seconds(300)
    /// The time between two requests while the last keys are valid.
    private static let renewalInterval = Duration.seconds(60)

    init(
        choice: CredentialChoice, fixed: ObjectCredentials?,
        read: @escaping @Sendable () -> ObjectCredentials?, process: CredentialProcess?,
        service: MetadataService, wallClock: @escaping @Sendable () -> Timestamp
    ) {
        self.choice = choice
        self.fixed = Monitor(fixed)
        self.read = read
        self.service = service
        self.process = process
        self.wallClock = wallClock
    }

    func stop() { service.stop() }

    /// The keys of a request; nil for unsigned ones.
    func current() throws -> ObjectCredentials? {
        switch choice {
        case .none: return nil
        case .auto where process == nil: return fixed.withLock { $0 }
        case .auto: break
        case .metadata: break
        }
        if let known = temporary.withLock({ $0.current(at: wallClock()) }) { return known }
        return try renewal.withLock { _ in
            let now = wallClock()
            // Another thread may have renewed them.
            if let known = temporary.withLock({ $0.current(at: now) }) { return known }
            do {
                let renewed = try process?.credentials() ?? service.credentials()
                temporary.withLock { $0.credentials = renewed }
            } catch {
                // The last ones may be valid for some minutes.
                guard let end = temporary.withLock({ $0.credentials?.expiresAt }), now < end else {
                    throw error
                }
            }
            return temporary.withLock { temporary in
                temporary.nextRenewal = now.advanced(by: ObjectKeys.renewalInterval)
                return temporary.credentials
            }
        }
    }

    /// Replaces keys that have expired. Another program may have written new ones into the file.
    ///
    /// - Returns: whether there are, or may be, others.
    func replace(_ expired: ObjectCredentials?) -> Bool {
        switch choice {
        case .none: return false
        case .auto where process == nil:
            return fixed.withLock { fixed in
                // Another thread may have read them.
                if fixed == expired, let new = read(), new.arePrintable { fixed = new }
                return fixed != expired
            }
        case .metadata, .auto:
            temporary.withLock { temporary in
                if temporary.credentials == expired { temporary.credentials = nil }
            }
            return true
        }
    }
}
