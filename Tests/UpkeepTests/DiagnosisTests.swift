import Pipeline
import PrefetchModel
import Testing

@testable import CacheStorage
@testable import Upkeep

/// Each check of `doctor` on its own.
struct DiagnosisTests {
    private let now = Timestamp(seconds: 1_800_000_000)

    private func daysAgo(_ days: Double) -> Timestamp {
        now.advanced(by: .zero - .milliseconds(Int64(days * 86_400_000)))
    }

    private func expect(
        _ diagnosis: Diagnosis, _ state: Diagnosis.DiagnosisState, _ text: String,
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        #expect(diagnosis.state == state, "\(diagnosis)", sourceLocation: sourceLocation)
        #expect(diagnosis.message.contains(text), "\(diagnosis)", sourceLocation: sourceLocation)
        // Every problem has a remedy.
        #expect(
            (diagnosis.remedy != nil) == (state == .wrong), "\(diagnosis)",
            sourceLocation: sourceLocation)
    }

    // MARK: Status

    @Test func exitStatusIsTheWorstState() {
        let ok = Diagnosis.ok(.lock, "free")
        let wrong = Diagnosis.wrong(.log, "long", remedy: "wait")
        let unknown = Diagnosis.unknown(.space, "the system does not say")
        #expect([Diagnosis]().exitStatus == 0 && [ok, ok].exitStatus == 0)
        #expect([ok, wrong].exitStatus == 1 && [unknown, wrong, ok].exitStatus == 1)
        #expect([ok, unknown].exitStatus == 2)
    }

    // MARK: The folder

    private func ownership(
        isOwn: Bool = true, groupWrites: Bool = false
    ) -> CacheDirectory.Ownership {
        CacheDirectory.Ownership(
            owner: 1000, isOwn: isOwn, groupWrites: groupWrites,
            bits: groupWrites ? "0770" : "0700")
    }

    @Test func librariesOfTheSystemAndCarriedOnes() {
        let curl = "/lib/x86_64-linux-gnu/libcurl.so.4"
        let carried = "/opt/libexec/prefetch/libavif.so.15"
        #expect(Diagnosis.origins(of: []) == "")
        #expect(
            Diagnosis.origins(of: [curl, carried, "/usr/lib/liblcms2.so.2"])
                == "; from the system: libcurl.so.4 liblcms2.so.2; from /opt/libexec/prefetch: "
                + "libavif.so.15")
        #expect(
            Diagnosis.origins(of: [carried]) == "; from /opt/libexec/prefetch: libavif.so.15")
    }

    @Test func ownerAndModes() throws {
        expect(.owner(ownership()), .ok, "yours (uid 1000)")
        expect(.owner(ownership(isOwn: false)), .ok, "you can read it but not change it")
        expect(.modes(ownership(), remembered: nil, others: []), .ok, "0700")
        let mode = try #require(FileMode(text: "0640"))
        expect(.modes(ownership(), remembered: mode, others: []), .ok, "others may read")
        let stray = Diagnosis.modes(ownership(), remembered: mode, others: ["lock", "tmp"])
        expect(stray, .wrong, "lock, tmp")
        #expect(stray.remedy?.contains("prefetch chmod 0640") == true)
        let locked = Diagnosis.modes(
            ownership(), remembered: mode, others: [], withoutAccess: ["lock (0444)", "tmp (0555)"])
        expect(locked, .wrong, "lock (0444), tmp (0555)")
        #expect(locked.remedy?.contains("chmod u+rwX lock tmp") == true)
        expect(
            .modes(ownership(groupWrites: true), remembered: mode, others: []), .wrong,
            "group may write")
    }

    @Test func fileSystems() {
        let disk = FileSystem(type: 0xEF53)
        expect(.fileSystem(disk, isReadOnly: false, elsewhere: []), .ok, "ext4")
        expect(.fileSystem(.nfs, isReadOnly: false, elsewhere: []), .ok, "has no log")
        expect(.fileSystem(disk, isReadOnly: true, elsewhere: []), .wrong, "read-only")
        expect(
            .fileSystem(disk, isReadOnly: false, hasJournal: true, elsewhere: []), .ok,
            "ext4, without shared memory")
        expect(
            .fileSystem(disk, isReadOnly: false, elsewhere: ["tmp"]), .wrong,
            "tmp is on another")
    }

    private func room(_ free: ByteCount, files: Int? = 1_000_000) -> CacheDirectory.Room {
        CacheDirectory.Room(
            free: free, total: .mebibytes(1 << 20), freeFiles: files, isReadOnly: false)
    }

    @Test func growthCoversTheLastFourWeeks() {
        #expect(Diagnosis.growth([], at: now) == 0)
        // A first run of a minute ago gives no daily rate.
        let first = [(startedAt: daysAgo(0.001), stored: ByteCount(5000))]
        #expect(Diagnosis.growth(first, at: now) == 5000)
        let runs = [
            (startedAt: daysAgo(1), stored: ByteCount(600)),
            (startedAt: daysAgo(10), stored: ByteCount(400)),
            (startedAt: daysAgo(40), stored: ByteCount(1_000_000)),
            // Recorded by a wrong clock.
            (startedAt: daysAgo(-400), stored: ByteCount(1_000_000)),
        ]
        #expect(Diagnosis.growth(runs, at: now) == 100)
    }

    @Test func freeSpaceIsComparedWithGrowth() {
        let none = Diagnosis.growth([], at: now)
        let gibibyte = Diagnosis.growth([(daysAgo(1), .mebibytes(1024))], at: now)
        expect(.space(room(.mebibytes(100)), none), .ok, "100 MiB of 1.00 TiB free")
        expect(.space(room(.mebibytes(63)), none), .wrong, "only 63.0 MiB")
        expect(.space(room(.mebibytes(100), files: 4000), none), .wrong, "4000 files")
        expect(.space(room(.mebibytes(100), files: nil), none), .ok, "free")
        expect(.space(room(.mebibytes(6 << 10)), gibibyte), .wrong, "for 6 days")
        expect(.space(room(.mebibytes(8 << 10)), gibibyte), .ok, "for 8 days")
        expect(
            .space(
                room(.mebibytes(100)), Diagnosis.growth([(daysAgo(20), ByteCount(20))], at: now)),
            .ok, "for years")
        #expect(Diagnosis.space(nil, none).state == .unknown)
    }

    // MARK: The database

    @Test func databaseLogAndRuns() {
        expect(
            .database(size: .kibibytes(40), isSuspected: false, wasLookedThrough: true), .ok,
            "whole")
        expect(
            .database(size: .kibibytes(40), isSuspected: true, wasLookedThrough: true), .wrong,
            "damaged")
        expect(.log(nil, journal: nil, isHeld: false), .ok, "empty")
        expect(.log(.mebibytes(3), journal: nil, isHeld: false), .ok, "the next run")
        expect(.log(.mebibytes(3), journal: nil, isHeld: true), .ok, "in use")
        expect(.log(.mebibytes(65), journal: nil, isHeld: true), .wrong, "65.0 MiB")
        expect(.log(nil, journal: .kibibytes(3), isHeld: true), .ok, "in progress")
        expect(.log(nil, journal: .kibibytes(3), isHeld: false), .wrong, "interrupted")
        expect(.lock(nil), .ok, "free")
        expect(.runs([]), .ok, "none yet")
        let start = daysAgo(1)
        expect(.runs([(start, .running)]), .ok, "has been running since")
        expect(.runs([(start, .killed)]), .wrong, "was killed")
        expect(
            .runs([(start, .ended(at: now, exitStatus: 1)), (daysAgo(2), .killed)]), .ok,
            "ended with 1; 1 of the last 2 runs was killed")
        expect(.runs([(start, .ended(at: now, exitStatus: 2))]), .wrong, "exit 2")
    }

    @Test func missingContentFolderIsReported() {
        var found = Diagnosis.Leftovers()
        found.lostFiles = 52
        expect(.leftovers(found, isHeld: true), .wrong, "content is missing, with 52 files")
    }

    @Test func leftoversCountWithoutARunningProcess() {
        var found = Diagnosis.Leftovers()
        expect(.leftovers(found, isHeld: false), .ok, "none")
        found.temporaries = 2
        found.size = .kibibytes(8)
        expect(.leftovers(found, isHeld: true), .ok, "2 files in progress")
        expect(.leftovers(found, isHeld: false), .wrong, "2 files of 8.00 KiB")
        found = Diagnosis.Leftovers()
        found.removalIsUnfinished = true
        expect(.leftovers(found, isHeld: true), .ok, "none")
        expect(.leftovers(found, isHeld: false), .wrong, "removal")
        found = Diagnosis.Leftovers()
        found.orphansAreKept = true
        expect(.leftovers(found, isHeld: true), .wrong, "kept")
        found = Diagnosis.Leftovers()
        found.damagedDatabases = ["prefetch.sqlite.damaged-1", "prefetch.sqlite.damaged-2"]
        expect(.leftovers(found, isHeld: false), .wrong, "damaged-1 and 1 more")
    }

    @Test func hostsAndFailures() {
        expect(.hosts([]), .ok, "no host")
        let cooling = ["https://a", "https://b"].map { (host: $0, until: now) }
        expect(.hosts(cooling), .wrong, "https://a and 1 more are not requested until")
        let down = [(place: "https://a", reason: FailureReason.notAnImage, since: now)]
        expect(.hosts([], down: down), .wrong, "https://a: down since \(now), not-an-image")
        expect(.failures(FailureCounts()), .ok, "none")
        expect(.failures(FailureCounts(exclusions: 3)), .ok, "none; 3 excluded")
        expect(
            .failures(FailureCounts(failures: 5, blacklisted: 2)), .ok, "5, 2 of them blacklisted;")
    }

    // MARK: The program

    @Test func openFilesAreComparedWithJobs() {
        let configuration = RunConfiguration(userAgent: "t", manifests: [], codecWorkers: 2)
        let many = Diagnosis.openFiles(available: 65_000, configuration)
        expect(many, .ok, "\(configuration.maximumTransfers) transfers at once")
        expect(.openFiles(available: 100, configuration), .wrong, "makes do with")
        expect(.openFiles(available: 5, configuration), .wrong, "too few for any run")
        #expect(Diagnosis.openFiles(available: nil, configuration).state == .unknown)
    }

    // MARK: Origins

    private func response(_ status: Int = 404, offset: Duration? = nil) -> Diagnosis.OriginAnswer {
        .response(status: status, elapsed: .milliseconds(12), clockOffset: offset)
    }

    private func failure(_ reason: FailureReason, _ code: Int?) -> Diagnosis.OriginAnswer {
        .failure(reason: reason, curlCode: code, message: "no")
    }

    @Test func originResponsesAndFailures() {
        expect(.origin("https://a", response()), .ok, "https://a: 404 in 12 ms")
        expect(.origin("https://a", response(407)), .wrong, "credentials")
        expect(.origin("https://a", .none), .wrong, "no response")
        let resolver = Diagnosis.origin("https://a", failure(.dns, 6))
        expect(resolver, .wrong, "https://a: dns: no")
        #expect(resolver.remedy?.contains("getent") == true)
        #expect(Diagnosis.origin("https://a", failure(.dns, 5)).remedy?.contains("proxy") == true)
        #expect(Diagnosis.origin("https://a", failure(.tls, 60)).remedy?.contains("clock") == true)
    }

    @Test func clockIsComparedWithTheMedian() {
        #expect(Diagnosis.clock([.none, failure(.dns, 6), response()]).state == .unknown)
        expect(.clock([response(offset: .milliseconds(-900))]), .ok, "right, by 1 origin")
        expect(.clock([response(offset: .seconds(299))]), .ok, "off by 299 s")
        let behind = [Duration.seconds(4000), .seconds(3990), .zero].map { response(offset: $0) }
        expect(.clock(behind), .wrong, "3990 s behind 3 origins")
        expect(.clock([response(offset: .seconds(-301))]), .wrong, "301 s ahead of 1 origin")
        let oneIsWrong = [Duration.seconds(-90_000), .zero, .seconds(1)].map {
            response(offset: $0)
        }
        expect(.clock(oneIsWrong), .ok, "right")
    }
}
