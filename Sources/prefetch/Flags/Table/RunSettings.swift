import Manifests
import Pipeline
import PrefetchModel

/// The target of all flags: the run's configuration, and values that several flags make together.
struct RunSettings: Sendable {
    var run: RunConfiguration
    /// Files of `--cert` and `--key`.
    var certificate: String?
    var certificateKey: String?
    var encoding = EncodingSettings()

    init(_ run: RunConfiguration) {
        self.run = run
    }

    init(manifests: [String] = []) {
        run = RunConfiguration(
            userAgent: "", manifests: manifests, codecWorkers: AvailableProcessors.count)
    }

    /// Takes the client certificate of the files.
    ///
    /// - Throws: `UserError` for a file that can't be used.
    mutating func takeCertificate() throws {
        guard let certificate else { return }
        run.requests.clientCertificate = try RequestFiles.certificate(
            certificate, key: certificateKey)
    }
}

/// The entry fields that the table of a host sets.
struct HostFields: Sendable {
    var lifetime: Duration?
    var headers: [HeaderField] = []
    var bodyFilter: BodyFilterArgument?

    var defaults: HostDefaults {
        HostDefaults(
            timeToLive: lifetime, headers: headers,
            bodyFilter: bodyFilter.map { $0.filter.map { .filtered($0.name) } ?? .none })
    }
}
