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
    func apply(to configuration: inout RunConfiguration) throws {
        for case let filter? in hosts.map(\.fields.bodyFilter?.filter) {
            configuration.bodies.filters[filter.name] = filter
        }
        guard hosts.contains(where: \.changesRun) else { return }
        let common = configuration
        configuration.hosts.configurations = try table { try $0.configuration(of: common) }
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
