import ArgumentParser
import Buckets
import CacheStorage
import Exporting
import FileOutput
import Glibc
import PrefetchModel
import Reporting
import Threading

struct ExportCommand: InvokedCommand {
    static let configuration = CommandConfiguration(
        commandName: "export",
        abstract: "Write images under the names that programs expect.",
        discussion: """
            Exports the images of the lists, stale ones too, or all images without a list. Names are \
            made of the URLs as the lists spell them.

            Layouts: mirror (host/path/file, as wget -x), pattern (--name), the caches of the \
            libraries sdwebimage, kingfisher7, kingfisher8, nuke, coil3, glide and flutter, workbox \
            (a mirror and a precache manifest), webdataset (tar shards as img2dataset writes them), \
            imagefolder (Hugging Face).

            The folder is built next to its place and switched in one step; --update changes it in \
            place. Files that no export wrote are never replaced. A second export of the same images \
            changes nothing. Shards for a bucket are sent while they are made, without a copy on disk.

            Exit status: 0 all images exported, 1 some are missing, damaged or have a name twice, or \
            there is none, 2 the cache, a list or the folder cannot be used, 64 wrong usage, 75 \
            another export writes there.

            Examples:
              prefetch export public/img images.txt --layout mirror
              prefetch export site/img images.txt --variant small --variant large \
            --name '{stem}-{width}w.{ext}' --map srcset.tsv
              prefetch export Seed/com.hackemist.SDImageCache/default app.txt --layout sdwebimage
              prefetch export --touch Seed/Kingfisher
            """)

    @Argument(
        help: .value("folder", "The folder, or s3://BUCKET/PREFIX of an S3-compatible service."),
        completion: .directory)
    var folder: String

    @Argument(
        help: .value("list", "Lists, as for `run`; none for all images."),
        completion: .lists)
    var lists: [String] = []

    @OptionGroup var options: ExportOptions
    @OptionGroup var tree: ExportFolderOptions
    @OptionGroup var maps: ExportMapOptions

    @Flag(
        help: """
            Export nothing: renew the times of this folder, which git clone, cp -r and zip lose: \
            for kingfisher, sdwebimage and flutter.
            """)
    var touch = false

    @Flag(help: "Print the result as one JSON object.")
    var json = false

    @Flag(name: .shortAndLong, help: "Print nothing but errors.")
    var quiet = false

    @OptionGroup var listURLs: Flags<ListSourceFlags>
    @OptionGroup var input: Flags<InputFlags>
    @OptionGroup var cache: CacheOptions
    @OptionGroup var bucket: Flags<BucketWritingFlags>

    /// The lists as arguments and by `--list`; all images without any.
    var allLists: [String] { lists + listURLs.lists }

    func validate() throws {
        guard !touch else {
            guard allLists.isEmpty, options.isEmpty, maps.files.isEmpty else {
                throw ValidationError("--touch takes a folder, without lists and other flags")
            }
            return
        }
        // Only when it runs, it is missing: the parser names unknown flags after this.
        guard options.givenLayout != nil else { return }
        let layout = try options.rules.layout
        try maps.check(layout, caption: options.caption)
        try checkBucket(layout)
        guard !tree.links || !layout.setsTimes else {
            throw ValidationError(
                "--link: \(layout.rawValue) takes the time of a file for its age, which a link "
                    + "shares with the cache")
        }
    }

    func run(_ invocation: Invocation) throws {
        if touch { return try renewTimes() }
        _ = try options.rules
        let signals = try SignalWatcher()
        let catalog = try cache.catalog()
        try checkPlaces()
        let export = try export(from: catalog, invocation.lists, signals, at: WallClock.now())
        let collection = export.collection
        for message in collection.messages { StandardError.write("prefetch: \(message)") }
        let lost = collection.plan.rows(in: export.lost)
        let lostPaths = Set(lost.map(\.path))
        try maps.write(
            collection.plan.rows.filter { !lostPaths.contains($0.path) },
            in: location == nil ? folder : nil, caption: try options.rules.caption)
        try say(
            collection, collection.plan.rows.count - lost.count, export.hasChanged, export.changes)
        if let gap = collection.gap, tree.removesFiles {
            StandardError.message(
                "\(folder): no file was removed: \(redacted(gap.description))", hint: ListGap.hint)
        }
        if !quiet { warn(export) }
        guard collection.losses.isEmpty, collection.gap == nil else {
            throw UserError(
                .incomplete,
                collection.losses.isEmpty
                    ? redacted(collection.gap?.description ?? "")
                    : "not exported: " + collection.losses.text,
                hint: collection.losses.hint(for: collection.plan.layout))
        }
    }

    private func renewTimes() throws {
        let renewal = try ExportRenewal(folder, at: WallClock.now())
        if json {
            var object = JSONObject()
            object.add("type", "summary")
            object.add("layout", renewal.layout.rawValue)
            object.add("files_renewed", renewal.renewed)
            object.add("files_missing", renewal.missing.count)
            try LineWriter.print(object)
        } else if !quiet {
            StandardError.write(
                "prefetch: \(folder): times of \(counted(renewal.renewed, "file")) renewed")
        }
        if let first = renewal.missing.first {
            throw UserError(
                .incomplete, folder,
                "\(counted(renewal.missing.count, "file")) missing or changed, like "
                    + printable(first), hint: "export the images again")
        }
    }

    /// - Throws: `UserError` with status 64 if the folder is in the cache or holds it, or a
    ///   map would overwrite another file.
    private func checkPlaces() throws {
        let path = try cache.path()
        var files = WrittenFiles()
        files.written = maps.files
        if location == nil { files.written.append(WrittenFiles.Use(path: folder, name: "export")) }
        files.read = allLists.map { WrittenFiles.Use(path: $0) }
        try files.check(cache)
        guard location == nil else { return try maps.check(outside: nil) }
        try FilePlace.check(folder: folder)
        guard !WrittenFiles.isInside(path, folder: folder) else {
            throw UserError(
                .usage, "\(folder): the cache is in this folder",
                hint: "export to another folder")
        }
        try maps.check(outside: folder)
    }

    struct Export {
        let collection: ExportCollection
        let lost: Set<String>
        let hasChanged: Bool
        let changes: ExportTree.Changes
    }

    /// Makes another plan if content files are damaged: a run may have replaced the images since,
    /// and the layouts' indexes name exported images only.
    private func export(
        from catalog: CacheCatalog, _ configured: ConfiguredLists, _ signals: SignalWatcher,
        at now: Timestamp
    ) throws -> Export {
        var damaged: Set<ContentDigest> = []
        // The lists of pipes cannot be read again.
        var plansLeft = allLists.allSatisfy(UsageAdvice.isFile) ? 3 : 1
        while true {
            plansLeft -= 1
            var collection = try collectImages(from: catalog, configured, without: damaged, at: now)
            collection.settle()
            guard !collection.plan.rows.isEmpty || tree.allowsEmpty else {
                for message in collection.messages { StandardError.write("prefetch: \(message)") }
                throw UserError(
                    .incomplete,
                    "\(folder): unchanged, since there is no image to export"
                        + (collection.losses.isEmpty ? "" : ": \(collection.losses.text)"),
                    hint: collection.losses.hint(for: collection.plan.layout)
                        ?? "--allow-empty exports an empty folder")
            }
            for (flag, name) in options.details
            where collection.plan.rows.allSatisfy({ $0.image.detail(name) == nil }) {
                throw UserError(
                    .usage, "\(flag) \(name): no image has this attribute or column",
                    hint: "`prefetch attr set` and the columns of lists give images one")
            }
            let export = try write(
                collection, from: catalog, signals, isLast: plansLeft == 0, &damaged, at: now)
            if let export { return export }
        }
    }

    /// Writes a plan. The last one is written without the damaged files.
    ///
    /// - Returns: nil if nothing was put in place, since content files are damaged.
    private func write(
        _ collection: ExportCollection, from catalog: CacheCatalog, _ signals: SignalWatcher,
        isLast: Bool, _ damagedImages: inout Set<ContentDigest>, at now: Timestamp
    ) throws -> Export? {
        var collection = collection
        let plan = collection.plan
        let line = Monitor(ProgressText(isWanted: !quiet))
        defer { line.withLock { $0.clear() } }
        let cancelled: @Sendable () -> Bool = { signals.caught != nil }
        let progress: @Sendable (Int, Int) -> Void = { done, all in
            line.withLock { $0.show("prefetch: exporting: \(done)/\(all)") }
        }
        let settings = self.tree.settings(collection.gap)
        do {
            if let location {
                let storage = try BucketFlags.storage(location, bucket)
                signals.hand { _ in storage.stop() }
                let sent = try ExportObjects(
                    plan, to: ExportBucket(storage: storage), folder, settings,
                    from: catalog.directory, workers: AvailableProcessors.count,
                    isCancelled: cancelled, progress: progress)
                for (path, problem) in sent.problems { collection.report(path, problem) }
                return Export(
                    collection: collection, lost: Set(sent.problems.map(\.path)),
                    hasChanged: sent.changes.written + sent.changes.removed > 0,
                    changes: sent.changes)
            }
            let tree = try ExportTree(folder, for: plan, settings, from: catalog.directory, at: now)
            // Noted as `signals.caught`.
            signals.hand { _ in }
            let problems = try tree.write(
                workers: AvailableProcessors.count, isCancelled: cancelled, progress: progress)
            let damaged = problems.filter { $0.problem == .damaged }.map(\.path)
            if !isLast, !damaged.isEmpty {
                damagedImages.formUnion(plan.rows(in: Set(damaged)).map(\.image.stored.digest))
                return nil
            }
            let hasChanged = try tree.finish()
            let lost = problems + tree.foreign.map { ($0, .foreign) }
            for (path, problem) in lost { collection.report(path, problem) }
            return Export(
                collection: collection, lost: Set(lost.map(\.path)),
                hasChanged: hasChanged, changes: tree.changes)
        } catch {
            guard let signal = signals.caught else { throw error }
            line.withLock { $0.clear() }
            StandardError.write(
                "prefetch: \(folder): interrupted; "
                    + (location == nil
                        ? "the folder is as it was" : "the next export sends the rest"))
            ProcessEnd.die(of: signal)
        }
    }

    private func say(
        _ collection: ExportCollection, _ exported: Int, _ hasChanged: Bool,
        _ changes: ExportTree.Changes
    ) throws {
        if json {
            var object = JSONObject()
            object.add("type", "summary")
            object.add("layout", collection.plan.layout.rawValue)
            object.add("images", exported)
            object.add("changed", hasChanged)
            object.add("files_written", changes.written)
            object.add("files_shared", changes.shared)
            object.add("bytes_written", changes.writtenSize)
            object.add("files_unchanged", changes.kept)
            object.add("files_removed", changes.removed)
            object.add("stale", collection.stale)
            object.add("undecoded", collection.undecoded.values.reduce(0, +))
            object.add("losses", collection.losses.object)
            try LineWriter.print(object)
        } else if !quiet {
            let stale = collection.stale > 0 ? ", \(collection.stale) of them stale" : ""
            let what =
                hasChanged
                ? "\(counted(changes.written, "file")) written (\(changes.writtenSize)), "
                    + "\(changes.kept) unchanged, \(changes.removed) removed"
                : "unchanged"
            StandardError.write(
                "prefetch: \(folder): \(counted(exported, "image"))\(stale): \(what)")
        }
    }
}
