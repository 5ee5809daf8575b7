import ArgumentParser
import ConfigurationFiles
import Manifests
import Pipeline
import PrefetchModel

/// The tables `[host."*.example.com"]` of configuration files.
struct ConfiguredHosts: Sendable {
    private var hosts: [(pattern: HostPattern, host: HostSettings)] = []

    /// The fields of entries by host.
    var defaults: HostTable<HostDefaults> {
        let table = table { $0.fields.defaults }
        // A pattern without fields still hides less specific ones.
        return table.values.allSatisfy(\.isEmpty) ? HostTable() : table
    }

    private func table<Value>(
        _ value: (HostSettings) throws -> Value
    ) rethrows -> HostTable<Value> {
        let rows = try hosts.map { ($0.pattern, try value($0.host), $0.host.isForeign) }
        return HostTable(
            rows.filter { !$0.2 }.map { ($0.0, $0.1) },
            otherwise: rows.filter(\.2).map { ($0.0, $0.1) })
    }

    init() {}

    /// Takes the tables of the settings, without the flags that the command line or a variable sets
    /// for all hosts.
    init(
        _ settings: EffectiveSettings, without isGiven: (String) -> Bool
    ) throws {
        for host in settings.hosts {
            hosts.append(
                try ConfiguredHosts.parsed(host, host.settings.filter { !isGiven($0.key) }))
        }
    }

    /// Reads a table as a run reads its flags, except for the contents of files.
    static func parsed(
        _ host: EffectiveSettings.HostPatternTable, _ settings: [ConfigurationSetting]
    ) throws -> (pattern: HostPattern, host: HostSettings) {
        guard let pattern = HostPattern(host.pattern) else {
            throw UserError(
                at: host.settings[0].origin, "'\(host.pattern)' is no pattern of a host",
                hint: "like *.example.com, without scheme and port")
        }
        return (
            pattern,
            try HostSettings(name: host.pattern, isForeign: host.isForeign, settings)
        )
    }

    /// Gives the hosts of the tables configurations of their own: the run's with their settings.
    func apply(to configuration: inout RunConfiguration) throws {
        for case let filter? in hosts.map(\.host.fields.bodyFilter?.filter) {
            configuration.bodies.filters[filter.name] = filter
        }
        guard hosts.contains(where: { $0.host.changesRun }) else { return }
        let common = configuration
        configuration.hosts.configurations = try table {
            try $0.configuration(of: common)
        }
    }

    /// Warns about hosts without verified certificates, in every run.
    func warn() {
        for (_, host) in hosts where host.isInsecure {
            StandardError.write(
                "prefetch: [host.\"\(printable(host.name))\"] insecure: certificates are not "
                    + "verified: anyone on the network path can pose as the origin")
        }
    }
}

/// The settings of a call that are not arguments: the tables of its configuration files.
struct Invocation: Sendable {
    var hosts = ConfiguredHosts()
    var lists = ConfiguredLists()
}

/// A command that uses tables of configuration files. `main` passes them on.
protocol InvokedCommand: ParsableCommand {
    mutating func run(_ invocation: Invocation) throws
}

extension ParsableCommand {
    /// Runs the command, with the invocation if it takes one.
    mutating func start(_ invocation: Invocation) throws {
        guard var invoked = self as? any InvokedCommand else { return try run() }
        try invoked.run(invocation)
    }
}
