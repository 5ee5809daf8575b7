import ArgumentParser
import CacheStorage
import Decoding
import Manifests
import Pipeline
import PrefetchModel
import Reporting
import Upkeep

struct PutCommand: HostedCommand {
    static let configuration = CommandConfiguration(
        commandName: "put",
        abstract: "Store a file as the image of a URL.",
        discussion: """
            Stores the file as if a run with the same flags had just downloaded it from the URL, for \
            example for tests or in CI. Until the image expires, such runs find it fresh; after that \
            they download it.

            The image replaces any earlier image of the URL and clears its failure. A file that \
            cannot be stored changes nothing.

            Exit status: 0 stored, 1 the file cannot be read or is not an image that a run would \
            store, 2 the cache cannot be used, 64 wrong usage, 75 another process holds the cache.

            Examples:
              prefetch put https://example.com/hero.jpg hero.jpg
              prefetch put https://example.com/hero.jpg hero.jpg --ttl 365d
              make-banner | prefetch put https://example.com/banner.png - --encode webp
            """)

    // A list, though empty: fish would offer files for the first argument and not the second.
    @Argument(help: .value("url", "The image's URL."), completion: .list([]))
    var url: String

    @Argument(
        help: .value("file", "The file, at most --max-filesize; `-` is standard input."),
        completion: .file())
    var file: String

    @Option(
        name: .customLong("attr"),
        help: .value("name=value", "Give the image an extended attribute; repeatable."))
    var attributes: [String] = []

    @Flag(help: "Print a JSON object per stored variant, as `get --json` does.")
    var json = false

    @Flag(name: .shortAndLong, help: "Print nothing but errors.")
    var quiet = false

    @OptionGroup var keys: Flags<KeyFlags>
    @OptionGroup var options: ChangeOptions
    @OptionGroup var storing: StoringOptions

    /// The key of the image, as a run makes it.
    private func key(of target: RequestURL) throws -> String {
        let name = ImageName(argument: target.withoutCredentials.text).leavingOut(keys)
        return try name.canonicalKey ?? name.text
    }

    func run(_ invocation: Invocation) throws {
        let target = try ManifestSequence.url(of: url)
        let attributes = try entryAttributes()
        // Before the cache is locked or created: a bad file must not change it.
        let seed = try makeSeed(
            at: target, invocation.hosts.defaults[hostIn: target.text]?.timeToLive)
        let now = WallClock.now()
        let lines = try options.change(creates: true) { cache in
            let entry: ImageSeed.Entry = (seed, target, try key(of: target), attributes)
            return try ImageSeed.store([entry], in: cache, at: now)[0].map {
                line(of: $0, $1, in: cache)
            }
        }
        if json { try printObjects(of: target, at: now) }
        if !quiet {
            let missing = seed.missing.map { name, message in
                """
                prefetch: \(RedactedURL(url)): warning: the stored variant \(name) is removed, since \
                it cannot be made of \(InputFile(file).name): \(message)
                """
            }
            let faults = seed.warning.map {
                ["prefetch: \(RedactedURL(url)): warning: \(InputFile(file).name): \($0)"]
            }
            ((json ? [] : lines) + missing + (faults ?? [])).forEach(StandardError.write)
        }
    }

    private func entryAttributes() throws -> [EntryAttribute] {
        var result: [EntryAttribute] = []
        for text in attributes {
            guard let equals = text.firstIndex(of: "=") else {
                throw UserError(
                    .usage, "--attr takes NAME=VALUE, like licence=CC-BY-4.0, not '\(text)'")
            }
            let attribute = try AttrCommand.attribute(
                String(text[..<equals]), Array(text[text.index(after: equals)...].utf8))
            guard !result.contains(where: { $0.name == attribute.name }) else {
                throw UserError(.usage, "--attr \(attribute.name) is given twice")
            }
            result.append(attribute)
        }
        return result
    }

    /// Reads, checks and encodes the file.
    ///
    /// - Throws: `UserError` with status 1 for a file that can't be stored.
    private func makeSeed(
        at target: RequestURL, _ lifetimeOfHost: Duration?
    ) throws -> ImageSeed {
        var configuration = try storing.configuration()
        configuration.lifetimes.forced = lifetimeOfHost ?? configuration.lifetimes.forced
        let variants = Array(configuration.images.variants)
        let stored = try storedVariants(of: target, beside: variants)
        configuration.images.variants = try VariantSet(variants + stored)
        let input = InputFile(file)
        func refusal(_ message: String) -> UserError {
            UserError(.incomplete, "\(input.name): \(message)")
        }
        let limit = configuration.limits.maximumBodySize
        let bytes = try reporting(as: { $0.kind = .incomplete }) {
            try input.read(limit: limit.bytes < .max ? limit.bytes + 1 : limit.bytes)
        }
        guard bytes.count <= limit.bytes else {
            throw refusal("larger than --max-filesize (\(limit))")
        }
        let processor = BudgetedImageProcessor(configuration.images)
        try processor.checkWalls()
        return try Result { () throws(Failure) in
            try ImageSeed(
                bytes, by: configuration, processor: processor,
                optional: Set(stored.map(\.name)))
        }.mapError { refusal($0.message) }.get()
    }

    /// The variants of the stored image that no flag names. A run makes them of a new image, too.
    ///
    /// - Throws: `UserError` for an unreadable cache, or too many variants of an image.
    private func storedVariants(
        of target: RequestURL, beside variants: [RequestedVariant]
    ) throws -> [RequestedVariant] {
        // `put` creates a missing cache.
        guard let catalog = try options.cache.existingCatalog() else { return [] }
        let items = try catalog.variants(of: key(of: target))
        let found = items.compactMap { item -> RequestedVariant? in
            guard !item.isSuperseded, let name = item.name.flatMap(VariantName.init),
                let recipe = Recipe(canonicalText: item.recipe),
                !variants.contains(where: { $0.name == name || $0.recipe == recipe })
            else { return nil }
            return RequestedVariant(name: name, recipe: recipe)
        }
        guard variants.count + found.count <= VariantSet.maximumCount else {
            throw UserError(
                .incomplete,
                "\(RedactedURL(url)): more than \(VariantSet.maximumCount) variants together "
                    + "with the stored ones",
                hint: "`prefetch prune --variants-unused-for` removes variants")
        }
        return found
    }

    /// `prefetch: https://a.example/a.png: stored as /…/content/….png (png, 192x192, 9.94 KiB)`
    private func line(
        of variant: RequestedVariant, _ image: StoredImage, in cache: OpenCache
    ) -> String {
        let name = variant.name == .main ? "" : "variant \(variant.name) "
        let size = image.knownWidth.map { "\($0)x\(image.heightInPixels), " } ?? ""
        return """
            prefetch: \(RedactedURL(url)): \(name)stored as \(cache.directory.path(of: image)) \
            (\(image.format.rawValue), \(size)\(image.size))
            """
    }

    private func printObjects(of target: RequestURL, at now: Timestamp) throws {
        let catalog = try options.cache.catalog()
        var output = LineWriter.standardOutput()
        let items = try catalog.variants(of: key(of: target))
        for variant in try storing.variants {
            guard let item = items.first(where: { $0.recipe == variant.recipeText }) else {
                continue
            }
            var object = JSONObject(
                item, as: variant.name.text,
                attributes: try catalog.attributes(of: item.resource), at: now)
            object.add("path", catalog.wholeFile(of: item.image))
            try output.write(object)
        }
        try output.finish()
    }
}
