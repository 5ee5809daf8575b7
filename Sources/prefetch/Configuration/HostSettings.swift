import ArgumentParser
import ConfigurationFiles
import Glibc
import Manifests
import Pipeline
import PrefetchModel

/// The settings of one table `[host."PATTERN"]`.
///
/// Read without the parser, which takes a third of a millisecond for each table.
struct HostSettings: Sendable {
    /// The pattern.
    let name: String
    /// As ``EffectiveSettings/Host/isForeign``.
    let isForeign: Bool
    private var lifetime: Duration?
    private var fields: [HeaderField] = []
    private(set) var bodyFilter: BodyFilterArgument?
    private(set) var isInsecure = false
    private var certificate: String?
    private var certificateKey: String?
    /// The changes of the run's configuration; errors are those of files.
    private var changes: [Change] = []

    private struct Change {
        let origin: ConfigurationSetting.Origin?
        let make: @Sendable (inout RunConfiguration) throws -> Void
    }

    /// The place of the setting that is read, and of the last one.
    private var origin: ConfigurationSetting.Origin?

    init(name: String, isForeign: Bool = false) {
        self.name = name
        self.isForeign = isForeign
    }

    var defaults: HostDefaults {
        HostDefaults(
            timeToLive: lifetime, headers: fields,
            bodyFilter: bodyFilter.map { $0.filter.map { .filtered($0.name) } ?? .none })
    }

    /// Whether the host differs from others in more than the fields of entries.
    var changesRun: Bool { !changes.isEmpty || certificate != nil || certificateKey != nil }

    /// The configuration of a run at this host.
    ///
    /// - Throws: ``ConfigurationProblem`` for a wrong value, `UserError` for a file that
    ///   can't be used.
    func configuration(of run: RunConfiguration) throws -> RunConfiguration {
        var configuration = run
        for change in changes {
            try HostSettings.located(at: change.origin) { try change.make(&configuration) }
        }
        try HostSettings.located(at: origin) {
            if certificateKey != nil, certificate == nil {
                throw RequestOptions.usage("[host.\"\(name)\"]: key needs cert")
            }
            if let certificate {
                configuration.requests.clientCertificate = try RequestOptions.certificate(
                    certificate, key: certificateKey)
            }
        }
        return configuration
    }

    /// Adds the place of a setting to wrong values.
    private static func located(
        at origin: ConfigurationSetting.Origin?, _ body: () throws -> Void
    ) throws {
        do {
            try body()
        } catch let failure as UserError {
            guard let origin, failure.kind == .usage else { throw failure }
            throw ConfigurationProblem(
                origin: origin, message: failure.message, hint: failure.hint)
        }
    }

    private mutating func change(
        _ make: @escaping @Sendable (inout RunConfiguration) throws -> Void
    ) {
        changes.append(Change(origin: origin, make: make))
    }

    /// Adds a setting.
    ///
    /// - Throws: ``ConfigurationProblem`` for a wrong value.
    mutating func take(_ setting: ConfigurationSetting) throws(ConfigurationProblem) {
        origin = setting.origin
        do {
            switch setting.value {
            case .isOn(let isOn): take(insecure: isOn)
            case .text, .texts:
                let expands = HostSettings.keysWithVariables.contains(setting.key)
                let texts = try setting.value.texts.map { text in
                    expands ? try HostSettings.expanded(text, of: setting.key) : text
                }
                try take(setting.key, texts)
            }
        } catch {
            let text =
                (error as? UserError)?.description ?? (error as? ValidationError)?.message
                ?? "\(error)"
            throw ConfigurationProblem(
                origin: setting.origin, message: UsageAdvice.addingForm(to: text))
        }
    }

    private mutating func take(insecure isOn: Bool) {
        isInsecure = isOn
        change { configuration in
            configuration.requests.verifiesOrigins = !isOn
        }
    }

    private mutating func take(_ key: String, _ texts: [String]) throws {
        let text = texts.last ?? ""
        switch key {
        case RunFlags.lifetime.row.name:
            lifetime = try value(of: RunFlags.lifetime, text).duration
        case RunFlags.userAgent.row.name:
            fields = fields.replaced(by: [HeaderField(name: "User-Agent", value: text)])
        case RunFlags.header.row.name:
            fields = fields.replaced(by: try RequestOptions.fields(of: texts))
        case RunFlags.bodyFilter.row.name:
            bodyFilter = try value(of: RunFlags.bodyFilter, text)
        case RunFlags.certificate.row.name: certificate = text
        case RunFlags.certificateKey.row.name: certificateKey = text
        case RunFlags.user.row.name:
            change { $0.requests.credentials = try RequestOptions.credentials(text) }
        case RunFlags.proxy.row.name:
            change {
                // The table names this host, so no exception applies.
                $0.requests.proxies = try RequestOptions.proxies(text, exceptions: "")
            }
        case RunFlags.authorityFile.row.name:
            change {
                // It names whom to trust at this host.
                $0.requests.verifiesOrigins = true
                $0.requests.authorityFolder = nil
                try RequestOptions.trust(
                    WrittenFiles.Use(path: text, name: "--cacert"), in: &$0.requests)
            }
        default: try takeLimit(key, text)
        }
    }

    /// Takes a limit, or a rule for responses.
    private mutating func takeLimit(_ key: String, _ text: String) throws {
        switch key {
        case RunFlags.hostConcurrency.row.name:
            let most = try value(of: RunFlags.hostConcurrency, text).value
            try HostOptions.check(concurrency: most)
            change { $0.hosts.concurrency = most }
        case RunFlags.hostInterval.row.name:
            let interval = try value(of: RunFlags.hostInterval, text).duration
            change { $0.hosts.interval = interval }
        case RunFlags.hostRate.row.name:
            let interval = try value(of: RunFlags.hostRate, text).interval
            change { $0.hosts.interval = interval }
        case RunFlags.retry.row.name:
            let most = try value(of: RunFlags.retry, text)
            try HostOptions.check(retries: most)
            change { $0.hosts.maximumRetries = most }
        case RunFlags.connectTimeout.row.name:
            let limit = try timeout(RunFlags.connectTimeout, text)
            change { $0.limits.connectTimeout = limit }
        case RunFlags.stallTimeout.row.name:
            let limit = try timeout(RunFlags.stallTimeout, text)
            change { $0.limits.stallTimeout = limit }
        case RunFlags.timeout.row.name:
            let limit = try timeout(RunFlags.timeout, text)
            change { $0.limits.totalTimeout = limit }
        case RunFlags.acceptStatus.row.name:
            let statuses = try value(of: RunFlags.acceptStatus, text)
            try ResponseOptions.check(accepted: statuses)
            change { $0.bodies.responses.acceptedStatuses = statuses }
        case RunFlags.acceptType.row.name:
            let types = try value(of: RunFlags.acceptType, text)
            change { $0.bodies.responses.acceptedTypes = types }
        case RunFlags.blacklistStatus.row.name:
            let statuses = try value(of: RunFlags.blacklistStatus, text)
            change { $0.bodies.responses.blacklistedStatuses = statuses }
        default: preconditionFailure("the table of hosts has no flag '\(key)'")
        }
    }

    private func timeout(_ flag: RunFlag<DurationArgument>, _ text: String) throws -> Duration {
        let limit = try value(of: flag, text)
        try LimitOptions.check(limit, "--\(flag.row.name)")
        return limit.duration
    }

    private func value<Value: ExpressibleByArgument>(
        of flag: RunFlag<Value>, _ text: String
    ) throws(UserError) -> Value {
        try HostSettings.parsed(text, flag.row)
    }

    private func value<Value: ExpressibleByArgument>(
        of flag: RunFlag<Value?>, _ text: String
    ) throws(UserError) -> Value {
        try HostSettings.parsed(text, flag.row)
    }

    private static func parsed<Value: ExpressibleByArgument>(
        _ text: String, _ row: FlagRow
    ) throws(UserError) -> Value {
        guard let value = Value(argument: text) else {
            throw RequestOptions.usage(
                "The value '\(text)' is invalid for '--\(row.name) <\(row.value ?? "")>'")
        }
        return value
    }

    /// The keys whose values may be environment variables. No message shows them.
    private static let keysWithVariables: Set = [
        RunFlags.header.row.name, RunFlags.user.row.name, RunFlags.proxy.row.name,
    ]

    /// The value of a text: for `$NAME`, also behind the name of a header field, that of the
    /// environment variable.
    private static func expanded(_ text: String, of key: String) throws(UserError) -> String {
        guard let start = ConfigurationKeys.ProjectRule.startOfVariable(in: text),
            start == text.startIndex || key == RunFlags.header.row.name
        else { return text }
        let name = text[start...].dropFirst()
        guard let value = environment(String(name)) else {
            throw UserError("the environment variable \(name) is not set")
        }
        return text[..<start] + value
    }
}
