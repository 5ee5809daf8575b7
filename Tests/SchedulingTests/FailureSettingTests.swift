import PrefetchModel
import Scheduling
import Testing

/// Which failures apply to a run with other settings.
struct FailureSettingTests {
    private func conditions(
        _ reason: FailureReason, _ values: [FailureSetting: String]
    ) -> FailureConditions {
        FailureConditions(of: reason) { values[$0] ?? "1" }
    }

    @Test(arguments: [("100", true), ("99", true), ("101", false), ("many", false)])
    func limitAppliesToEqualAndStricterValues(present: String, holds: Bool) {
        for setting in [FailureSetting.maximumBodySize, .maximumCacheSize] {
            let stored = conditions(.tooLarge, [setting: "100"])
            #expect(stored.hold { $0 == setting ? present : "1" } == holds)
        }
    }

    @Test(arguments: [("0", "0", true), ("0", "1", false), ("1", "0", true), ("1", "1", true)])
    func permissionIsALimit(stored: String, present: String, holds: Bool) {
        let conditions = conditions(.redirect, [.allowsDowngrade: stored])
        #expect(conditions.hold { $0 == .allowsDowngrade ? present : "1" } == holds)
    }

    @Test func otherSettingsMustBeEqual() {
        let stored = conditions(.httpStatus, [.request: "9"])
        #expect(stored.hold { $0 == .request ? "9" : "1" })
        #expect(!stored.hold { $0 == .request ? "8" : "1" })
    }

    /// Each listed variant of several lines fails.
    @Test(arguments: [
        ("png", true), ("jpeg;q=5,png", true), ("webp", true), ("jpeg;q=5", false), ("", false),
        ("|png|webp", false),
    ])
    func anyItemIsEnough(present: String, holds: Bool) {
        let stored = conditions(
            .unsupportedImage, [.method: FailureConditions.any(of: ["png", "webp"])])
        #expect(FailureConditions(text: stored.text) == stored)
        #expect(stored.hold { $0 == .method ? present : "1" } == holds)
    }

    @Test func settingsOfOtherReasonsDoNotMatter() {
        let stored = conditions(.httpStatus, [:])
        #expect(
            stored.hold {
                [.request, .route, .acceptedStatuses, .blacklistedStatuses, .files].contains($0)
                    ? "1" : "another"
            })
    }

    @Test(arguments: FailureReason.allCases)
    func textRoundTrips(reason: FailureReason) {
        let stored = FailureConditions(of: reason) { "\($0.rawValue.utf8.count)" }
        #expect(FailureConditions(text: stored.text) == stored)
        #expect(
            Set(stored.text.split(separator: " ").map { String($0.prefix { $0 != "=" }) })
                == Set(FailurePolicy.settings(of: reason).map(\.rawValue)))
    }

    /// Most entries have no file, and their rows do not say so.
    @Test func emptyValuesAreNotStored() {
        let stored = conditions(.corruptImage, [.files: ""])
        #expect(!stored.text.contains("files="))
        #expect(stored.hold { $0 == .files ? "tag" : "1" })
        let file = conditions(.corruptImage, [.files: "tag"])
        #expect(file.hold { $0 == .files ? "tag" : "1" })
        #expect(!file.hold { $0 == .files ? "" : "1" })
    }

    @Test func unknownSettingsAreIgnored() {
        let stored = FailureConditions(text: "max-pixels=10 moon=full nothing = =1")
        #expect(stored.text == "max-pixels=10")
        #expect(FailureConditions(text: "").hold { _ in "anything" })
    }

    @Test func everySettingIsUsed() {
        #expect(
            Set(FailureReason.allCases.flatMap(FailurePolicy.settings))
                == Set(FailureSetting.allCases)
        )
    }
}
