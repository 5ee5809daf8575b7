import ConfigurationFiles

/// The flag for the place of the cache.
struct CacheFlags: FlagRows {
    static let flags = FlagTable(CacheFlags())

    let directory = RunFlag<String?>(
        "cache-dir", value: "dir",
        help: """
            The cache's directory (default: $PREFETCH_CACHE_DIR, else systemd's $CACHE_DIRECTORY, \
            else $XDG_CACHE_HOME/prefetch, else ~/.cache/prefetch).
            """, brief: "where the cache is (default: ~/.cache/prefetch)", inProjects: .refused,
        environment: ["PREFETCH_CACHE_DIR", "CACHE_DIRECTORY"])
}

/// Flags that choose configuration files.
///
/// They are evaluated before the parser runs, by ``ConfigurationSearch``: the files give arguments.
struct ConfigurationFlags: FlagRows {
    static let flags = FlagTable(ConfigurationFlags())

    let file = RunFlag<String?>(
        "config", value: "file",
        help: """
            Read this configuration file instead of ./prefetch.toml, \
            $XDG_CONFIG_HOME/prefetch/config.toml (else ~/.config/prefetch/config.toml) and \
            /etc/prefetch/config.toml; none reads no file (default: $PREFETCH_CONFIG).
            """, isConfigurable: false, environment: ["PREFETCH_CONFIG"])

    let profile = RunFlag<String?>(
        "profile", value: "name",
        help: """
            Also use the table [profile.NAME] of the configuration files (default: \
            $PREFETCH_PROFILE).
            """, isConfigurable: false, environment: ["PREFETCH_PROFILE"])

    let trustsProject = RunFlag<Bool>(
        "trust-project-config",
        help: """
            Let ./prefetch.toml set everything, also files, proxies, credentials and the cache's \
            directory, and belong to another user.
            """, isConfigurable: false)
}
