import ArgumentParser

/// What `prefetch -h` and `prefetch run -h` print: a page with the options that are used most.
/// `prefetch run --help` has all of them.
enum ShortHelp {
    static var text: String {
        let commands = Prefetch.configuration.subcommands.map { command in
            let name = command.configuration.commandName ?? ""
            let gap = String(repeating: " ", count: max(1, nameColumns - name.count))
            return "  \(name)\(gap)\(command.configuration.abstract)"
        }
        return head + commands.joined(separator: "\n") + "\n\n" + options
    }

    private static let nameColumns = 14

    private static let head = """
        prefetch keeps an on-disk cache of images warm.

        Usage: prefetch [run] [options] MANIFEST|URL...
               prefetch COMMAND [options]

        Commands:

        """

    private static let options = """
        Options of run, the most used:
          --cache-dir DIR         where the cache is (default: ~/.cache/prefetch)
          --base-url URL          base URL of relative entries
          --order fifo|lifo       start the first or the last entries first
          -j, --jobs N            concurrent transfers (32)
          --host-concurrency N    concurrent transfers per host (8)
          --host-interval D       least time between two requests to a host (0s)
          --retry N               retries per entry after failures that may pass (3)
          --timeout D             time limit per transfer (5m)
          --max-filesize SIZE     largest response body (64MiB)
          --header 'NAME: VALUE'  header field for every request, or @FILE
          --user NAME:PASSWORD    credentials for every listed origin, or @FILE
          --refresh WHICH         request again: stale, all, force or none
          --ttl D                 how long images are fresh, whatever the origin says
          --offline               make no requests; say what is warm
          --retry-failed          also request blacklisted URLs
          --encode FORMAT         stored as: same, jpeg, png, webp, avif, auto, original
          --quality N             quality of jpeg, webp and avif, 1 to 100 (85)
          --animated WHAT         animations: keep, first (the first frame) or refuse
          --strip WHAT            metadata to remove: safe, all or none
          --variant NAME=SPEC     also keep each image in this form, like web=jpeg,q=60
          --store-original        also keep the bytes as they came
          --report FILE           one JSON object per entry; - is standard output
          --summary FORMAT        text, json or none
          --fail-on any|new       failures that make the exit status 1
          --max-failures N|P%     how many of them are tolerated
          --lock WHAT             if another run holds the cache: fail, skip or wait
          -q, -v                  print nothing if all is well; print every entry
          -V, --version           version, commit and libraries

        Examples:
          prefetch images.txt --order lifo
          prefetch images.txt -q --fail-on new --lock skip      # in cron
          prefetch get https://example.com/logo.png

        prefetch run --help shows all
        """
}
