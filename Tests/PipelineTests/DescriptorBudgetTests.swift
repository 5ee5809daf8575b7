import Testing

@testable import Pipeline

@Suite(.timeLimit(.minutes(15)))
struct DescriptorBudgetTests {
    @Test func sufficientDescriptorsChangeNothing() {
        let wanted = DescriptorBudget(codecWorkers: 2, transfers: 32)
        #expect(wanted.fitted(to: wanted.total) == wanted)
        #expect(wanted.total < 1000)
        #expect(wanted.folders == 256)
    }

    @Test(arguments: [1, 2, 8, 64], [1, 32, 10_000])
    func neverExceedsAvailableDescriptors(workers: Int, transfers: Int) throws {
        let wanted = DescriptorBudget(codecWorkers: workers, transfers: transfers)
        for available in DescriptorBudget.minimum.total...2000 {
            let fitted = try #require(wanted.fitted(to: available))
            #expect(fitted.total <= available)
            for (value, limit, least) in [
                (fitted.readers, wanted.readers, 1),
                (fitted.codecWorkers, wanted.codecWorkers, 1),
                (fitted.transfers, wanted.transfers, 1),
                (fitted.connections, wanted.connections, 0),
                (fitted.folders, wanted.folders, 0),
            ] {
                #expect(value >= least && value <= limit, "\(fitted) of \(wanted)")
            }
        }
    }

    @Test func isNilBelowTheMinimum() {
        let wanted = DescriptorBudget(codecWorkers: 2, transfers: 32)
        #expect(wanted.fitted(to: DescriptorBudget.minimum.total) == .minimum)
        #expect(wanted.fitted(to: DescriptorBudget.minimum.total - 1) == nil)
        #expect(wanted.fitted(to: -5) == nil)
    }

    /// Except for one that a further thread may cost.
    @Test func moreDescriptorsMeanMoreTransfers() throws {
        let wanted = DescriptorBudget(codecWorkers: 4, transfers: 200)
        var last = 0
        for available in stride(
            from: DescriptorBudget.minimum.total, through: wanted.total + 10, by: 10)
        {
            let fitted = try #require(wanted.fitted(to: available))
            #expect(fitted.transfers >= last - 1)
            last = max(last, fitted.transfers)
        }
        #expect(last == 200)
    }

    @Test(arguments: [
        (1024, 1_048_576, 65_536), (1024, 4096, 4096), (100_000, 100_000, 100_000),
        (70_000, UInt.max, 70_000), (UInt.max, UInt.max, UInt.max),
    ])
    func openFileLimitIsNeverLowered(soft: UInt, hard: UInt, expected: UInt) {
        #expect(RunConfiguration.openFiles(soft: soft, hard: hard) == expected)
    }

    @Test func configurationFitsAvailableDescriptors() {
        var configuration = RunConfiguration(
            userAgent: "", manifests: [], codecWorkers: 8)
        #expect(configuration.readers == 4)
        #expect(configuration.openFolders == 256)
        #expect(configuration.keptConnections == 512)
        let fitsTooFew = configuration.fit(toDescriptors: RunConfiguration.minimumDescriptors - 1)
        #expect(!fitsTooFew)
        #expect(configuration.maximumTransfers == 256)
        let fits = configuration.fit(toDescriptors: RunConfiguration.minimumDescriptors)
        #expect(fits)
        #expect(configuration.maximumTransfers == 1)
        #expect(configuration.codecWorkers == 1)
        #expect(configuration.readers == 1)
        #expect(configuration.openFolders == 1)
        #expect(configuration.keptConnections == 1)
    }
}
