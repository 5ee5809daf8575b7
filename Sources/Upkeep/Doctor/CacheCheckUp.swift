import CacheStorage
package import Pipeline
package import PrefetchModel

/// Checks a cache and the needs of a run over it without changing anything: all of `doctor`. A
/// failed check does not stop the checks that do not depend on it. It reads the write-ahead log
/// through its index as it is, or without an index the database alone.
package struct CacheCheckUp: Sendable {
    private let configuration: RunConfiguration
    private let wallClock: @Sendable () -> Timestamp

    /// Takes the configuration of a run with the defaults.
    package init(
        _ configuration: RunConfiguration, wallClock: @escaping @Sendable () -> Timestamp
    ) {
        self.configuration = configuration
        self.wallClock = wallClock
    }

    /// `availableDescriptors` is the number of files and sockets that the process may still open.
    package func run(
        path: String, isOnline: Bool, availableDescriptors: Int?,
        report: (Diagnosis) throws -> Void
    ) rethrows {
        let (local, origins) = lookAtCache(path)
        for diagnosis in local { try report(diagnosis) }
        try report(.openFiles(available: availableDescriptors, configuration))
        try report(.libraries())
        try report(.sandbox())
        guard isOnline else { return }
        let probe = OriginProbe(configuration, wallClock: wallClock)
        for diagnosis in probe.diagnoses(of: origins) { try report(diagnosis) }
    }

    private func lookAtCache(_ path: String) -> (diagnoses: [Diagnosis], origins: [String]) {
        let directory: CacheDirectory
        do {
            directory = try CacheDirectory(path: path, access: .readOnly)
        } catch {
            return ([Diagnosis(.directory, error)], [])
        }
        var diagnoses = [Diagnosis.ok(.directory, path)]
        let holder = CacheLock.holder(in: directory)
        var catalog: CacheCatalog?
        var database: Diagnosis
        do {
            let opened = try CacheCatalog(examining: directory)
            database = .database(
                size: directory.size(ofCompanion: "") ?? ByteCount(0),
                isSuspected: directory.isDatabaseSuspected,
                wasLookedThrough: try opened.findDamage())
            catalog = opened
        } catch {
            database = Diagnosis(.database, error)
        }
        diagnoses += folder(directory, catalog)
        diagnoses += [
            space(directory, catalog), database,
            .log(
                directory.size(ofCompanion: "-wal"),
                journal: directory.size(ofCompanion: "-journal"), isHeld: holder != nil),
            .lock(holder),
        ]
        guard let catalog else { return (diagnoses, []) }
        let now = wallClock()
        diagnoses += [
            made(.runs, .runs(try catalog.runs().map { ($0.startedAt, $0.ending) })),
            made(.leftovers, .leftovers(try leftovers(directory, catalog), isHeld: holder != nil)),
            made(
                .hosts,
                .hosts(
                    try catalog.coolingHosts(at: now),
                    impossible: try catalog.impossibleHosts(at: now),
                    down: try catalog.downHosts(at: now))),
            made(.failures, .failures(try catalog.failureCounts { $0.isBlacklisted(at: now) })),
        ]
        // An unreadable database has a line of its own.
        let origins = (try? catalog.largestHosts(OriginProbe.originLimit)) ?? []
        return (diagnoses, origins)
    }

    private func made(
        _ check: Diagnosis.Check, _ make: @autoclosure () throws(StorageError) -> Diagnosis
    ) -> Diagnosis {
        do {
            return try make()
        } catch {
            return Diagnosis(check, error)
        }
    }

    private func folder(_ directory: CacheDirectory, _ catalog: CacheCatalog?) -> [Diagnosis] {
        let fileSystem = fileSystem(directory)
        do {
            let ownership = try directory.ownership()
            // An unreadable database has a line of its own.
            let mode = try? catalog?.fileMode()
            // An unreadable folder is among those without access.
            var content: String?
            if catalog != nil { content = try? directory.contentFile(withoutMode: mode) }
            let others =
                mode.map(directory.namesWithoutMode) ?? directory.namesThatOthersWrite
            return [
                .owner(ownership),
                .modes(
                    ownership, remembered: mode, others: others,
                    content: content,
                    withoutAccess: ownership.isOwn ? directory.namesWithoutAccess : []),
                fileSystem,
            ]
        } catch {
            return [Diagnosis(.owner, error), fileSystem]
        }
    }

    private func fileSystem(_ directory: CacheDirectory) -> Diagnosis {
        let isReadOnly = directory.room?.isReadOnly ?? false
        do {
            if !isReadOnly { try directory.requireCalls() }
        } catch {
            let found = Diagnosis(.fileSystem, error)
            return .wrong(
                .fileSystem, found.message,
                remedy: found.remedy ?? "check the disk, or name another directory with --cache-dir"
            )
        }
        return .fileSystem(
            directory.fileSystem, isReadOnly: isReadOnly, hasJournal: directory.hasJournal,
            elsewhere: directory.namesElsewhere)
    }

    private func space(_ directory: CacheDirectory, _ catalog: CacheCatalog?) -> Diagnosis {
        // Without runs, the line lacks the growth.
        let runs = (try? catalog?.runs()) ?? []
        return .space(
            directory.room,
            Diagnosis.growth(
                runs.map { ($0.startedAt, ByteCount($0.counters?.bytesStored ?? 0)) },
                at: wallClock()))
    }

    private func leftovers(
        _ directory: CacheDirectory, _ catalog: CacheCatalog
    ) throws(StorageError) -> Diagnosis.Leftovers {
        var leftovers = Diagnosis.Leftovers()
        (leftovers.temporaries, leftovers.size) = try directory.temporaries(
            besides: catalog.partialNames())
        (leftovers.removalIsUnfinished, leftovers.orphansAreKept) = try catalog.orphans()
        leftovers.damagedDatabases = try directory.damagedDatabases()
        if !directory.contains("content") { leftovers.lostFiles = try catalog.countFiles() }
        return leftovers
    }
}
