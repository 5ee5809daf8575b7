import ArgumentParser
import ConfigurationFiles
import Glibc
import Manifests
import PrefetchModel

/// The lists of configuration files, `@NAME` among the arguments.
struct ConfiguredLists: Sendable {
    /// The tables by name, with the arguments for ``Flags<NamedListFlags>``.
    private var lists: [String: (table: EffectiveSettings.NamedTable, arguments: [String])] = [:]

    init() {}

    /// Takes the lists of the settings.
    ///
    /// `before` and `after` are the arguments of each flag about manifests, from configuration
    /// files and from the command line: they are weaker and stronger than a list's own.
    init(_ settings: EffectiveSettings, before: [String: [String]], after: [String: [String]]) {
        for list in settings.lists {
            let own = Dictionary(grouping: list.flags, by: \.key)
                .mapValues { $0.flatMap(ConfiguredLists.arguments(of:)) }
            let all = before.merging(own) { $1 }.merging(after) { $1 }
            lists[list.name] = (list, all.values.flatMap { $0 })
        }
    }

    /// The mistakes in a list's own keys.
    static func problems(in list: EffectiveSettings.NamedTable) -> [UserError] {
        func message(_ settings: [ConfigurationSetting]) -> String? {
            do {
                _ = try Flags<NamedListFlags>.parse(settings.flatMap(arguments(of:)))
                return nil
            } catch {
                return UsageAdvice.oneLine(Flags<NamedListFlags>.message(for: error))
            }
        }
        guard let all = message(list.flags) else { return [] }
        let single = list.flags.compactMap { setting in
            message([setting]).map { UserError(at: setting.origin, $0) }
        }
        return single.isEmpty ? [UserError(at: list.settings[0].origin, all)] : single
    }

    private static func arguments(of setting: ConfigurationSetting) -> [String] {
        switch setting.value {
        case .isOn(let isOn): isOn ? ["--\(setting.key)"] : []
        case .text, .texts:
            setting.value.texts.flatMap { ConfiguredCommand.arguments(setting.key, $0) }
        }
    }

    func has(_ name: String) -> Bool { lists[name] != nil }

    /// Whether an argument names a list: `@shop`. A file of such a name is `./@shop`.
    static func isName(_ argument: String) -> Bool {
        argument.hasPrefix("@") && argument != "@"
    }

    /// The files and URLs of the list that an argument names, with their options.
    func files(
        of argument: String, options: ManifestOptions
    ) throws -> [(name: String, options: ManifestOptions)] {
        guard let (list, arguments) = lists[String(argument.dropFirst())] else {
            let names = lists.keys.sorted().map { "@\($0)" }
            throw UserError(
                "\(argument): no configuration file has a list of this name",
                hint: UsageAdvice.isFile(argument)
                    ? "for the file: ./\(argument)"
                    : names.isEmpty
                        ? "a list is a table [list.NAME] in a configuration file"
                        : "known are \(names.listed(with: "and"))")
        }
        let files = list.settings.filter { $0.key == ConfigurationKeys.listFile }
            .flatMap(\.value.texts).map { ConfiguredLists.path(of: $0, in: list.path) }
        if list.isForeign,
            let file = files.first(where: {
                ManifestSequence.isURL($0) || !ConfiguredLists.isInside($0)
            })
        {
            throw UserError(
                "\(list.path): list '\(argument.dropFirst())': \(file) leads out of the folder",
                hint: "--trust-project-config allows it")
        }
        let input: Flags<NamedListFlags>
        do {
            input = try Flags<NamedListFlags>.parse(arguments)
        } catch {
            if let problem = ConfiguredLists.problems(in: list).first { throw problem }
            let message = UsageAdvice.oneLine(Flags<NamedListFlags>.message(for: error))
            throw UserError(.usage, "\(argument): \(message)")
        }
        var own = options
        input.apply(to: &own)
        return files.map { ($0, own) }
    }

    /// A URL, or a path relative to the folder of the configuration file.
    static func path(of file: String, in configuration: String) -> String {
        guard !file.hasPrefix("/"), !ManifestSequence.isURL(file) else { return file }
        if let slash = configuration.lastIndex(of: "/") {
            return String(configuration[...slash]) + file
        }
        // Neither standard input, nor a URL or a list.
        return "./" + file
    }

    /// Whether a file lies in the current folder, also behind its links. A missing file does.
    private static func isInside(_ file: String) -> Bool {
        var status = stat()
        if lstat(file, &status) != 0, errno == ENOENT { return true }
        // A link to an open file has no real path.
        guard let folder = realpath(".", nil), let path = realpath(file, nil) else { return false }
        defer {
            free(folder)
            free(path)
        }
        let inside = String(cString: folder)
        return String(cString: path).hasPrefix(inside == "/" ? "/" : inside + "/")
    }
}

extension EffectiveSettings.NamedTable {
    /// The settings of a list that are flags about manifests.
    fileprivate var flags: [ConfigurationSetting] {
        settings.filter { $0.key != ConfigurationKeys.listFile }
    }
}
