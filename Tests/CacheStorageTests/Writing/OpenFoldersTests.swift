import Testing

@testable import CacheStorage

@Suite(.timeLimit(.minutes(15)))
struct OpenFoldersTests {
    /// Closing this handle has no effect, since its descriptor is negative.
    private static func handle(_ number: Int32) -> FileDescriptor { FileDescriptor(-number) }

    @Test func evictsTheLeastRecentlyUsedFolder() {
        var folders = OpenFolders(capacity: 2)
        let (first, second, third) = (
            OpenFoldersTests.handle(1), OpenFoldersTests.handle(2), OpenFoldersTests.handle(3)
        )
        var closed = [folders.add(first, 1), folders.add(second, 2)]
        var used = [folders.use(1)]
        closed.append(folders.add(third, 3))
        used += [folders.use(2), folders.use(1), folders.use(3)]
        #expect(closed.map { $0?.number } == [nil, nil, second.number])
        #expect(used.map { $0?.number } == [first, nil, first, third].map { $0?.number })
        #expect(folders.count == 2)
    }

    @Test func keepsOneHandlePerFolder() {
        var folders = OpenFolders(capacity: 1)
        let (first, second) = (OpenFoldersTests.handle(1), OpenFoldersTests.handle(2))
        let closed = [folders.add(first, 7), folders.add(second, 7)]
        let used = folders.use(7)
        #expect(closed.map { $0?.number } == [nil, first.number])
        #expect(used?.number == second.number)
        #expect(folders.count == 1)
    }
}
