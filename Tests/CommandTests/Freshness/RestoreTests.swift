import Foundation
import TestSupport
import Testing

/// A cache copied away and back, as CI does between jobs: without times and extended attributes.
@Suite(.timeLimit(.minutes(15)))
struct RestoreTests {
    @Test(arguments: [
        "tar -cf - cache | tar -xmf - --no-same-permissions -C back",
        "tar -czf - --numeric-owner --sort=name cache | tar -xzf - -C back",
        "cp -R --no-preserve=all cache back/",
    ])
    func restoredCacheIsWarmAndWhole(copy: String) async throws {
        try await withOrigin { origin in
            let urls = origin.serveImages(40)
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let options = ["--variant", "web=jpeg,q=50", "--file-attributes"]
                let run = try await workspace.finish(
                    workspace.prefetchCommand(urls, options).run(), entries: urls.count)
                #expect(run.summary.outcomes == ["downloaded": 40], "\(run.result)")
                var command = workspace.command([
                    "-ec",
                    """
                    umask 077
                    mkdir back
                    ( \(copy) )
                    rm -r cache
                    mv back/cache cache
                    """,
                ])
                command.executable = "/bin/sh"
                let restored = try await command.run()
                #expect(restored.status == 0, "\(restored)")
                let asked = origin.requests.count

                // Before a run has repaired anything.
                let verify = try await workspace.run("verify")
                #expect(verify.status == 0 && verify.output.isEmpty, "\(verify)")
                #expect(verify.error.hasPrefix("prefetch: 80 files, "), "\(verify)")
                let get = try await workspace.run("get", urls[7], "--variant", "web")
                #expect(get.status == 0, "\(get)")
                for check in ["auto", "always"] {
                    let again = try await workspace.finish(
                        workspace.prefetchCommand(urls, options + ["--check-files", check]).run(),
                        entries: urls.count)
                    #expect(again.summary.outcomes == ["fresh": 40], "\(again.result)")
                    #expect(again.result.error.isEmpty == false, "\(again.result)")
                }
                #expect(origin.requests.count == asked)
                let after = try await workspace.run("verify")
                #expect(after.status == 0 && after.output.isEmpty, "\(after)")
            }
        }
    }
}
