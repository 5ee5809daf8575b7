import Glibc
import TestSupport
import Testing
import Threading

@testable import prefetch

@Suite(.timeLimit(.minutes(15)))
struct InputFileTests {
    /// Linux cannot tell whether `..` leaves a folder while any folder of the system is moved.
    @Test func findsLinksWhileFoldersMove() async throws {
        try await withWorkspace { workspace in
            let folder = workspace.folder
            for name in ["d", "d/e", "x", "y", "x/moved"] { mkdir("\(folder)/\(name)", 0o700) }
            try workspace.write([], to: "d/b.png")
            symlink("../b.png", "\(folder)/d/e/a.png")
            let isDone = Monitor(false)
            let mover = try OwnedThread(name: "mover") {
                while !isDone.withLock({ $0 }) {
                    rename("\(folder)/x/moved", "\(folder)/y/moved")
                    rename("\(folder)/y/moved", "\(folder)/x/moved")
                }
            }
            defer {
                isDone.update { $0 = true }
                mover.join()
            }
            for _ in 0..<20_000 {
                close(try InputFile.openRegular("e/a.png", in: "\(folder)/d"))
            }
        }
    }
}
