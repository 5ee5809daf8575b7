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
