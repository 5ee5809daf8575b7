import ConfigurationFiles
import PrefetchModel

/// The files that are in force by configuration: its own files, files that any key of them or a
/// variable names, and files of credentials. No command may write over one.
enum ConfiguredFiles {
    /// Flags that name files which are only written. A page may be written by two commands.
    private static let outputs: Set<String> = [
        ShowingFlags.flags.report.row.name, ShowingFlags.flags.metrics.row.name,
        ShowingFlags.flags.junit.row.name,
        ShowingFlags.flags.page.row.name,
    ]

    /// The files that the configuration files and the environment name, in any profile. Mistakes in
    /// the files do not matter here.
    static func named(by choice: ConfigurationChoice) -> [WrittenFiles.Use] {
        // All files are protected: the next call may read others.
        let files = choice.paths.compactMap { path -> ConfigurationFile? in
            let bytes = try? InputFile.readRegular(path, limit: ConfigurationFile.maximumBytes)
            guard let bytes else { return nil }
            return ConfigurationFile(bytes, path: path, keys: .ofRun, isForeign: false)
        }
        var named = files.flatMap { file in
            file.settings.flatMap { ConfiguredFiles.uses(of: $0, in: file.path) }
        }
        let rows = RunFlags.all.filter { $0.value != nil }
        for setting in (try? EnvironmentSettings.settings(rows)) ?? [] {
            named += ConfiguredFiles.uses(of: setting, in: "")
        }
        let home = environment("HOME")
        let credentials = [
            ("NETRC", ".netrc"), ("AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials"),
            ("AWS_CONFIG_FILE", ".aws/config"),
        ]
        named += WrittenFiles.uses(
            credentials.map { variable, file in
                (variable, environment(variable) ?? home.map { "\($0)/\(file)" })
            })
        let variables =
            RouteFlags.flags.authorityFile.row.environment
            + ["AWS_CA_BUNDLE", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"]
        return named + WrittenFiles.uses(variables.map { ($0, environment($0)) })
    }

    private static func uses(
        of setting: ConfigurationSetting, in configuration: String
    ) -> [WrittenFiles.Use] {
        let texts = setting.value.texts
        if case .list = setting.table {
            guard setting.key == ConfigurationKeys.listFile else { return [] }
            return texts.filter { !ManifestSequence.isURL($0) }.map {
                WrittenFiles.Use(
                    path: ConfiguredLists.path(of: $0, in: configuration), name: "a list")
            }
        }
        if RunFlags.all.contains(where: { $0.name == setting.key && $0.value == "file" }) {
            guard !outputs.contains(setting.key) else { return [] }
            return texts.map { WrittenFiles.Use(path: $0, name: "--\(setting.key)") }
        }
        return texts.flatMap { text -> [WrittenFiles.Use] in
            if text.hasPrefix("@") {
                return [WrittenFiles.Use(path: String(text.dropFirst()), name: "@FILE")]
            }
            return overlays(in: text).map { WrittenFiles.Use(path: $0, name: "overlay=") }
        }
    }

    /// The files in steps of an image, `overlay=FILE@GRAVITY`.
    private static func overlays(in steps: String) -> [String] {
        steps.split(separator: ",").compactMap { step in
            guard let start = step.firstRange(of: "overlay=") else { return nil }
            return Transformation.overlayParts(String(step[start.upperBound...]))?.file
        }
    }
}
