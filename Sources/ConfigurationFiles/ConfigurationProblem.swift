package import PrefetchModel

/// A mistake in a configuration file or an environment variable.
package struct ConfigurationProblem: Error, Hashable, Sendable {
    package let origin: ConfigurationSetting.Origin
    /// One line without a final stop. It repeats keys, but no values, which may be secrets.
    package let message: String
    package var hint: String?

    package init(
        origin: ConfigurationSetting.Origin, message: String, hint: String? = nil
    ) {
        self.origin = origin
        self.message = message
        self.hint = hint
    }
}

extension ConfigurationProblem: CustomStringConvertible {
    /// `/etc/prefetch/config.toml:3: unknown key 'jbos'`
    package var description: String { "\(origin): \(message)" }
}

extension ConfigurationProblem: ReportableError {
    package var userError: UserError { UserError(.usage, description, hint: hint) }
}
