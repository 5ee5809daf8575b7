import Foundation
import TestSupport
import Testing

/// The packages, as far as a machine can test them without building a release.
@Suite(.timeLimit(.minutes(15)))
struct PackageTests {
    private func bash(_ workspace: Workspace, _ script: String) async throws -> CommandResult {
        var command = workspace.command([
            "-c", "set -eu; " + script, SourceTree.root.path, Workspace.binary,
        ])
        command.executable = "/bin/bash"
        return try await command.run()
    }

    /// A new virtual environment, without network.
    @Test func theWheelPassesItsTests() async throws {
        try await withWorkspace { workspace in
            let result = try await bash(
                workspace,
                """
                strip -o prefetch "$1"
                python3 "$0/Packaging/wheel/build.py" prefetch 1.2.3 .
                python3 -m venv environment
                environment/bin/pip install --quiet --no-index --disable-pip-version-check *.whl
                environment/bin/pip show prefetch-images
                environment/bin/python -Im unittest discover -s "$0/Packaging/wheel/tests"
                """)
            #expect(result.status == 0, "\(result)")
            #expect(result.output.contains("Version: 1.2.3\n"), "\(result)")
            #expect(result.error.contains("\nOK"), "\(result)")
            #expect(!result.error.contains("Ran 0 tests"), "\(result)")
        }
    }

    @Test(.enabled(if: FileManager.default.fileExists(atPath: "/usr/bin/systemd-analyze")))
    func theUnitsAreValid() async throws {
        try await withWorkspace { workspace in
            let result = try await bash(
                workspace,
                """
                cp "$0/Packaging/deb/debian/"prefetch@.* .
                sed -i "s|/usr/bin/prefetch|$1|" prefetch@.service
                systemd-analyze verify --man=no prefetch@.service prefetch@.timer
                systemd-analyze security --offline=true --threshold=20 --no-pager ./prefetch@.service
                """)
            #expect(result.status == 0, "\(result)")
            #expect(!result.error.contains("prefetch@"), "\(result)")
        }
    }

    /// docs/recipes/ci.md as printed.
    @Test(arguments: ["github", "gitlab"])
    func theSamplesForCIRun(kind: String) async throws {
        try await withOrigin { origin in
            let urls = origin.serveImages(1)
            try await withWorkspace { workspace in
                try workspace.manifest(urls, name: "images.txt")
                let result = try await bash(
                    workspace,
                    """
                    mkdir -p package/bin tools
                    ln -s "$1" package/bin/prefetch
                    tar -czf tools/prefetch-0.1.0-linux-x86_64.tar.gz package
                    /usr/bin/python3 "$0/Tests/CommandTests/Install/ci-samples.py" \(kind) "$PWD"
                    """)
                #expect(result.status == 0, "\(result)")
                #expect((result.output + result.error).contains("1 downloaded"), "\(result)")
            }
        }
    }
}
