import Glibc

/// The value of an environment variable; nil if it is unset or empty.
func environment(_ name: String) -> String? {
    guard let value = getenv(name), value.pointee != 0 else { return nil }
    return String(cString: value)
}

/// The log of a CI service that obeys commands in printed lines.
enum ParsedLog {
    /// Whether it is GitHub's (also Forgejo's and Gitea's), Azure's or TeamCity's.
    static var isExpected: Bool {
        environment("GITHUB_ACTIONS") == "true" || environment("TF_BUILD") != nil
            || environment("TEAMCITY_VERSION") != nil
    }
}
