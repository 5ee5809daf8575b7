import ArgumentParser

/// `prefetch plan`
struct PlanCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "plan",
        abstract: "Show what a run would do, without doing it.",
        discussion: """
            Takes the flags of `run`, and is `run --dry-run`. Sends no request, changes nothing \
            in the cache, and does not wait for a running run. Files are not checked for existence.

            States: fresh, new, stale, incomplete (a variant needs a request), derivable (made from \
            stored files), blacklisted, duplicate, excluded, invalid. -v prints the state of each \
            entry and its reason. Sizes and times are those that earlier runs suggest; redirects and \
            retries come on top.

            Exit status: that of the run if every transfer succeeded.

            Examples:
              prefetch plan images.txt
              prefetch plan images.txt -v | grep ^new
            """)

    @Flag(help: "Print one JSON object, with -v also one for each entry.")
    var json = false

    @OptionGroup var options: RunCommand

    func run() throws { try options.plan(json: json) }
}
