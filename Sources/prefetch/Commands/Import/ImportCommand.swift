import ArgumentParser
import Exporting
import Manifests
import PrefetchModel
import Reporting
import Upkeep

extension ImportLayout: ExpressibleByArgument {}

struct ImportCommand: InvokedCommand {
    static let configuration = CommandConfiguration(
        commandName: "import",
        abstract: "Adopt files of earlier downloads, without a request.",
        discussion: """
            Looks for the file of each entry of the lists, and stores it as `put` does: decoded, \
            encoded by the same flags as a run's, and fresh from now on. Images that are fresh in the \
            cache already are kept. Files that no line names are not read.

            Layouts: mirror (as `wget -x`, or `export --layout mirror`), sdwebimage, curl (as \
            `curl -O`, in one folder), webdataset (a tar shard or a folder of them, which name the \
            URLs).

            Exit status: 0 every entry is in the cache, 1 a file is missing or is no image that a \
            run would store, 2 the cache, a list or the source cannot be used, 64 wrong usage, 75 \
            another process holds the cache.

            Examples:
              prefetch import mirror/ images.txt --layout mirror
              prefetch import downloads/ images.txt --layout curl --encode original
              prefetch import 00000.tar urls.csv --layout webdataset --ttl 30d
            """)

    @Argument(help: .value("source", "The folder, or a tar archive."), completion: .file())
    var source: String

    @Argument(help: .value("list", "Lists, as for `run`."), completion: .file())
    var lists: [String] = []

    @Option(help: .value("layout", "The arrangement of the files."))
    var layout: ImportLayout

    @Flag(help: "Print the result as one JSON object.")
    var json = false

    @Flag(name: .shortAndLong, help: "Print nothing but errors.")
    var quiet = false

    @OptionGroup var input: Flags<InputFlags>
    @OptionGroup var options: ChangeOptions
    @OptionGroup var storing: StoringOptions

    func validate() throws {
        guard !lists.isEmpty else { throw ValidationError("name a list of the images") }
    }

    func run(_ invocation: Invocation) throws {
        var rules = input.manifestOptions(variants: try storing.variants)
        rules.keepsSpelling = true
        let entries = try ManifestSequence(
            arguments: lists, options: rules, configured: invocation.lists,
            copiesIn: options.cache, isQuiet: quiet)
        let now = WallClock.now()
        let progress = try options.change(creates: true) { cache in
            var importing = try FileImport(self, into: cache, at: now)
            try importing.run(over: entries)
            return importing.counts
        }
        if json {
            var object = JSONObject()
            object.add("type", "summary")
            object.add("entries", progress.entries)
            object.add("imported", progress.imported)
            object.add("kept", progress.kept)
            object.add("duplicates", progress.duplicates)
            object.add("missing", progress.missing)
            object.add("refused", progress.refused)
            object.add("invalid", progress.invalid)
            try LineWriter.print(object)
        } else if !quiet {
            StandardError.write("prefetch: \(progress.text)")
        }
        guard progress.lost == 0 else {
            throw UserError(
                .incomplete, "\(progress.lost) of \(progress.entries) entries are not in the cache",
                hint: "`prefetch run` over the same lists downloads them")
        }
    }
}
