import ArgumentParser
import ConfigurationFiles
import Manifests
import Pipeline
import PrefetchModel

/// The tables `[host."*.example.com"]` of configuration files.
struct ConfiguredHosts: Sendable {
    private var hosts: [HostSettings] = []

    var defaults: HostTable<HostDefaults> {
        let table = table { $0.fields.defaults }
        // A pattern without fields still hides less specific ones.
        return table.values.allSatisfy(\.isEmpty) ? HostTable() : table
    }

    private func table<Value>(
        _ value: (HostSettings) throws -> Value
    ) rethrows -> HostTable<Value> {
        func rows(_ isForeign: Bool) throws -> [(pattern: HostPattern, value: Value)] {
            try hosts.filter { $0.table.isForeign == isForeign }.map { ($0.pattern, try value($0)) }
        }
        return HostTable(try rows(false), otherwise: try rows(true))
    }

    init() {}

    /// Takes the tables of the settings, without the flags that the command line or a variable sets
    /// for all hosts.
    init(_ settings: EffectiveSettings, without isGiven: (String) -> Bool) throws {
        hosts = try settings.hosts.map { table in
            try HostSettings(table, table.settings.filter { !isGiven($0.key) })
        }
    }

    /// Gives the hosts of the tables configurations of their own: the run's with their settings.
    /// `withHeaders`: also the fields that a run gives to the entries of the host.
    func apply(to configuration: inout RunConfiguration, withHeaders: Bool = false) throws {
        for case let filter? in hosts.map(\.fields.bodyFilter) {
            configuration.bodies.filters[filter.name] = filter
        }
        guard
            hosts.contains(where: {
                $0.changesRun || withHeaders && !$0.fields.defaults.headers.isEmpty
            })
        else { return }
        let common = configuration
        configuration.hosts.configurations = try table { host in
            var own = try host.configuration(of: common)
            let headers = withHeaders ? host.fields.defaults.headers : []
            own.requests.fields = own.requests.fields.replaced(by: headers)
            return own
        }
    }

    /// Warns about hosts without verified certificates, in every run.
    func warn() {
        for host in hosts where host.isInsecure {
            StandardError.write(
                "prefetch: [host.\"\(printable(host.table.name))\"] insecure: certificates are not "
                    + "verified: anyone on the network path can pose as the origin")
        }
    }
}

/// The settings of one table `[host."PATTERN"]`: the flags of the run, applied for some hosts.
///
/// Read without the parser, which takes a third of a millisecond for each table.
struct HostSettings: Sendable {
    let pattern: HostPattern
    let table: EffectiveSettings.NamedTable
    private(set) var fields = HostFields()
    let isInsecure: Bool
    private var changes:
        [(setting: ConfigurationSetting, make: @Sendable (inout RunSettings) throws -> Void)] = []

    /// Takes some settings of a table in the order of the flags, as the command line does. Reads
    /// no files yet.
    init(_ table: EffectiveSettings.NamedTable, _ settings: [ConfigurationSetting]) throws {
        guard let pattern = HostPattern(table.name) else {
            throw UserError(
                at: table.settings[0].origin, "'\(table.name)' is no pattern of a host",
                hint: "like *.example.com or example.com:8080, without scheme")
        }
        (self.pattern, self.table) = (pattern, table)
        isInsecure = settings.contains {
            $0.key == RouteFlags.flags.insecure.row.name && $0.value == .isOn(true)
        }
        for flag in RunFlags.perHost {
            for setting in settings where setting.key == flag.row.name {
                try take(setting, of: flag)
            }
        }
    }

    /// Whether the host differs from others in more than the fields of entries.
    var changesRun: Bool { !changes.isEmpty }

    /// The configuration of a run at this host.
    ///
    /// - Throws: `UserError` for a wrong value, or a file that can't be used.
    func configuration(of run: RunConfiguration) throws -> RunConfiguration {
        func origin(_ row: FlagRow) -> ConfigurationSetting.Origin? {
            changes.last { $0.setting.key == row.name }?.setting.origin
        }
        let route = RouteFlags.flags
        let authority = isInsecure ? origin(route.authorityFile.row) : nil
        let key = origin(route.certificateKey.row)
        // The check refuses only these two.
        if let place = authority ?? key {
            try HostSettings.located(at: place) {
                try RouteFlags.check(
                    isInsecure: isInsecure, namesAuthority: authority != nil,
                    hasCertificate: origin(route.certificate.row) != nil, hasKey: key != nil)
            }
        }
        var settings = RunSettings(run)
        for change in changes {
            try HostSettings.located(at: change.setting.origin) { try change.make(&settings) }
        }
        // The keys are more specific than fields for all hosts.
        let replaced =
            [(SenderFlags.flags.userAgent.row, "user-agent")]
            + [(SenderFlags.flags.acceptedFormats.row, "accept")]
        settings.run.requests.fields.removeAll { field in
            replaced.contains { origin($0.0) != nil && $0.1 == field.name.lowercased() }
        }
        try settings.takeCertificate()
        return settings.run
    }

    /// Adds the place of a setting to wrong values.
    private static func located(
        at origin: ConfigurationSetting.Origin, _ body: () throws -> Void
    ) throws {
        do {
            try body()
        } catch let mistake as ValidationError {
            throw UserError(at: origin, mistake.message)
        } catch let failure as UserError {
            guard failure.kind == .usage else { throw failure }
            throw UserError(at: origin, failure.description, hint: failure.hint)
        }
    }

    private mutating func take(_ setting: ConfigurationSetting, of flag: any AnyRunFlag) throws {
        do {
            let value = try HostSettings.expanded(setting.value, of: flag.row)
            if let make = try flag.apply(value, to: &fields) {
                changes.append((setting, make))
            }
        } catch {
            let text =
                (error as? UserError)?.description ?? (error as? ValidationError)?.message
                ?? "\(error)"
            throw UserError(at: setting.origin, UsageAdvice.addingForm(to: text))
        }
    }

    /// The value with environment variables expanded: `$NAME`, also behind the name of a header
    /// field. No message shows them.
    private static func expanded(
        _ value: ConfigurationSetting.Value, of row: FlagRow
    ) throws -> ConfigurationSetting.Value {
        guard row.holdsSecret else { return value }
        return .texts(
            try value.texts.map { text in
                guard let start = ConfigurationKeys.ProjectRule.startOfVariable(in: text),
                    start == text.startIndex || row.isRepeatable
                else { return text }
                let name = text[start...].dropFirst()
                guard let value = environment(String(name)) else {
                    throw UserError("the environment variable \(name) is not set")
                }
                return text[..<start] + value
            })
    }
}
