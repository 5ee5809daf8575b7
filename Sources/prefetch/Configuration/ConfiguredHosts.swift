import ArgumentParser
import ConfigurationFiles
import Glibc
import Manifests
import PrefetchModel
import Threading

/// The tables `[host."*.example.com"]` of configuration files.
enum ConfiguredHosts {
    private static let shared = Monitor<HostDefaults?>(nil)

    /// The fields of entries by host; nil without any table.
    static var defaults: HostDefaults? { shared.withLock { $0 } }

    /// The flags that the tables have.
    static var rows: [FlagRow] {
        [RunFlags.header.row, RunFlags.userAgent.row, RunFlags.lifetime.row]
    }

    /// Remembers the tables of the settings, without the flags that the command line or a variable
    /// sets for all hosts.
    ///
    /// - Throws: ``ConfigurationProblem`` for a wrong value.
    static func define(
        _ settings: EffectiveSettings, without isGiven: (String) -> Bool
    ) throws(ConfigurationProblem) {
        var rules: [HostDefaults.Rule] = []
        for host in settings.hosts {
            rules.append(try rule(host, host.settings.filter { !isGiven($0.key) }))
        }
        let defaults = rules.isEmpty ? nil : HostDefaults(rules)
        shared.withLock { $0 = defaults }
    }

    /// Reads a table as a run reads its flags.
    static func rule(
        _ host: EffectiveSettings.Host, _ settings: [ConfigurationSetting]
    ) throws(ConfigurationProblem) -> HostDefaults.Rule {
        var lifetime: Duration?
        var fields: [HeaderField] = []
        for setting in settings {
            let arguments = setting.value.texts.map { "--\(setting.key)=\($0)" }
            do {
                if setting.key == RunFlags.lifetime.row.name {
                    lifetime = try FreshnessOptions.parse(arguments).lifetime?.duration
                } else {
                    let options = try RequestOptions.parse(arguments)
                    fields = fields.replaced(by: try options.fields())
                    if setting.key == RunFlags.userAgent.row.name {
                        fields = fields.replaced(by: [
                            HeaderField(name: "User-Agent", value: options.userAgent)
                        ])
                    }
                }
            } catch {
                let text =
                    (error as? CommandFailure)?.message ?? FreshnessOptions.message(for: error)
                throw ConfigurationProblem(
                    origin: setting.origin, message: UsageAdvice.addingForm(to: text))
            }
        }
        guard let pattern = HostPattern(host.pattern) else {
            throw ConfigurationProblem(
                origin: host.settings[0].origin,
                message: "'\(host.pattern)' is no pattern of a host",
                hint: "like *.example.com, without scheme and port")
        }
        return HostDefaults.Rule(pattern, timeToLive: lifetime, headers: fields)
    }
}
