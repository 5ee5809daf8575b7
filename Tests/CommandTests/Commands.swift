import Foundation
import Glibc
import TestSupport
import Testing

extension Command {
    /// The same without root's right to write everywhere, where the tests have it.
    func withoutPrivileges() -> Command {
        guard geteuid() == 0 else { return self }
        var command = self
        command.arguments =
            ["--bounding-set", "-all", "--inh-caps", "-all", executable] + arguments
        command.executable = "/usr/bin/setpriv"
        return command
    }

    /// The same with a terminal for its standard output; its lines end with CR LF then.
    func onTerminal() -> Command {
        let script = """
            import os, pty, sys
            sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))
            """
        var command = self
        command.arguments = ["-I", "-c", script, executable] + arguments
        command.executable = "/usr/bin/python3"
        return command
    }
}

extension CommandResult {
    /// Standard output as JSON Lines of objects.
    func jsonLines() throws -> [[String: Any]] {
        try outputLines.map { line in
            let value = try JSONSerialization.jsonObject(with: Data(line.utf8))
            return try #require(value as? [String: Any], "\(self)")
        }
    }
}

extension Workspace {
    /// Moves all stored times into the past.
    func age(days: Int) async throws {
        let change = days * 86_400_000
        let columns = [
            "resource.fetched_at", "resource.validated_at", "variant.created_at",
            "variant.last_access_at", "listing.first_at", "listing.last_at", "variant_name.used_at",
            "run.started_at", "run.ended_at", "freshness.validated_at",
        ]
        let changes = columns.map { column in
            let parts = column.split(separator: ".")
            return "UPDATE \(parts[0]) SET \(parts[1]) = \(parts[1]) - \(change);"
        }
        try await runSQL(
            changes.joined()
                + "UPDATE property SET value = value - \(change) WHERE name = 'listings_begin'")
    }
}
