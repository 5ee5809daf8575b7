import Testing

@testable import ConfigurationFiles

/// The precedence of layers.
@Suite(.timeLimit(.minutes(15)))
struct EffectiveSettingsTests {
    /// A layer that may set `jobs`, highest first.
    enum Layer: Int, CaseIterable {
        case variable, projectProfile, userProfile, systemProfile, project, user, system
    }

    private func settings(
        _ layers: Set<Layer>, profile: String? = "p"
    ) -> EffectiveSettings {
        let files = [
            (Layer.project, Layer.projectProfile), (.user, .userProfile), (.system, .systemProfile),
        ].map { root, profile in
            ConfigurationFile(
                (layers.contains(root) ? "jobs = \(root.rawValue)\n" : "")
                    + (layers.contains(profile) ? "[profile.p]\njobs = \(profile.rawValue)\n" : ""),
                path: "\(root)")
        }
        let variable = ConfigurationSetting(
            key: "jobs", value: .text("\(Layer.variable.rawValue)"),
            origin: .variable("PREFETCH_JOBS"))
        return EffectiveSettings(
            files: files, variables: layers.contains(.variable) ? [variable] : [], profile: profile)
    }

    /// Every combination of layers.
    @Test func theHighestLayerDecides() {
        for mask in 0..<(1 << Layer.allCases.count) {
            let layers = Set(Layer.allCases.filter { mask & 1 << $0.rawValue != 0 })
            let all = settings(layers).flags["jobs"]?.value
            let highest = layers.map(\.rawValue).min()
            #expect(all == highest.map { .text("\($0)") }, "\(layers)")
            let profiles: Set<Layer> = [.projectProfile, .userProfile, .systemProfile]
            let without = settings(layers, profile: nil).flags["jobs"]?.value
            let rest = layers.subtracting(profiles).map(\.rawValue).min()
            #expect(without == rest.map { .text("\($0)") }, "\(layers)")
        }
    }

    private func settings(_ texts: [String], profile: String? = nil) -> EffectiveSettings {
        EffectiveSettings(
            files: texts.enumerated().map { ConfigurationFile($1, path: "\($0)") },
            profile: profile)
    }

    private func variants(_ settings: EffectiveSettings) -> [String] {
        settings.variants.map { variant in
            let first = variant.settings[0]
            let text = first.key == "variant" ? first.value.texts[0] : variant.name
            return "\(text) \(first.origin)"
        }
    }

    @Test func tablesOfVariantsAddUp() {
        let tables = settings([
            "[variant.a]\nresize = '1x1'\n",
            "[variant.b]\nresize = '2x2'\n[variant.a]\nlinear=true",
        ])
        #expect(variants(tables) == ["b 1:2", "a 0:2"])
        #expect(tables.variants[1].settings.map(\.key) == ["resize"])
    }

    @Test func theKeyVariantReplacesLowerLayers() {
        let list = settings(["variant = ['c=webp', 'd']", "[variant.b]\nresize = '2x2'\n"])
        #expect(variants(list) == ["c=webp 0:1", "d 0:1"])
        let none = settings(["variant = []", "variant = 'b=webp'"])
        #expect(variants(none) == [])
        let table = settings(["[variant.b]\nresize = '2x2'\n", "variant = ['b=webp', 'c=jpeg']"])
        #expect(variants(table) == ["c=jpeg 1:1", "b 0:2"])
        let profile = settings(
            ["[variant.a]\nresize = '1x1'\n", "[profile.p]\nvariant = 'x=png'"], profile: "p")
        #expect(variants(profile) == ["x=png 1:2"])
    }

    @Test func rulesOfPruneAddUp() {
        let rules = settings([
            "[prune]\ngone = false", "[prune]\nunlisted-for = '30d'\ngone = true",
        ])
        #expect(
            rules.rules.map { "\($0.key) \($0.value)" } == [
                "unlisted-for text(\"30d\")", "gone isOn(false)",
            ])
        let key = settings(["prune = 'gone'", "[prune]\nunlisted-for = '30d'"])
        #expect(key.rules == [] && key.pruneFlag?.value == .text("gone"))
    }

    @Test func aListIsReplacedAsAWhole() {
        let lists = settings([
            "[list.a]\nfile = 'x'", "[list.a]\nfile = 'y'\nformat = 'csv'\n[list.b]\nfile = 'z'",
        ]).lists
        #expect(lists.map(\.name) == ["b", "a"])
        #expect(lists[1].settings.map(\.key) == ["file"] && lists[1].path == "0")
    }

    @Test func theTableOfAPatternIsReplacedAsAWhole() {
        let hosts = settings([
            "[host.'*.a']\nttl = '1d'",
            "[host.'*.a']\nttl = '2d'\nheader = 'A: b'\n[host.b]\nttl = '3d'",
        ]).hosts
        #expect(hosts.map(\.name) == ["*.a", "b"])
        #expect(hosts[0].settings.map(\.value) == [.text("1d")])
    }

    @Test func profilesAreKnownByName() {
        let settings = settings(["[profile.b]", "[profile.a]\njobs = 1\n[profile.b]"])
        #expect(settings.profiles == ["a", "b"] && settings.flags.isEmpty)
    }
}
