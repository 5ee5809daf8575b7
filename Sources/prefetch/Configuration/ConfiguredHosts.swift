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
        // Without the parser, which takes a third of a millisecond for each table.
        for setting in settings {
            do {
                switch setting.key {
                case RunFlags.lifetime.row.name:
                    lifetime = try duration(setting.value.texts.last ?? "")
                case RunFlags.userAgent.row.name:
                    fields = fields.replaced(by: [
                        HeaderField(name: "User-Agent", value: setting.value.texts.last ?? "")
                    ])
                default:
                    fields = fields.replaced(
                        by: try RequestOptions.fields(of: setting.value.texts))
                }
            } catch {
                let text = (error as? CommandFailure)?.message ?? "\(error)"
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

    private static func duration(_ text: String) throws(CommandFailure) -> Duration {
        guard let value = DurationArgument(argument: text) else {
            throw RequestOptions.usage(
                "The value '\(text)' is invalid for '--\(RunFlags.lifetime.row.name) <duration>'")
        }
        return value.duration
    }
}
