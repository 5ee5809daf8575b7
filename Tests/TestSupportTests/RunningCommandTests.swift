import Foundation
import Glibc
import TestSupport
import Testing

private func shell(_ script: String) -> Command {
    Command(
        executable: "/bin/sh", arguments: ["-c", script], environment: ["PATH": "/usr/bin:/bin"],
        folder: "/")
}

@Suite(.timeLimit(.minutes(15)))
struct RunningCommandTests {
    @Test func separatesStreamsStatusAndSignal() async throws {
        let exited = try await shell("pwd; env >&2; exit 3").run()
        #expect(exited.status == 3 && exited.signal == nil)
        #expect(exited.output == "/\n")
        #expect(exited.error.contains("PATH=/usr/bin:/bin\n") && !exited.error.contains("HOME="))
        let killed = try await shell("kill -TERM $$").run()
        #expect(killed.status == nil && killed.signal == SIGTERM)
    }

    @Test func drainsBothStreamsAtOnce() async throws {
        let result = try await shell("head -c 3000000 /dev/zero >&2; head -c 3000000 /dev/zero")
            .run()
        #expect(result.outputBytes.count == 3_000_000 && result.errorBytes.count == 3_000_000)
    }

    @Test func providesStandardInput() async throws {
        var command = shell("cat")
        #expect(try await command.run().output == "")
        command.input = .bytes([UInt8](repeating: 65, count: 300_000))
        #expect(try await command.run().outputBytes.count == 300_000)
        command.input = .open
        let running = try command.start()
        running.send(Array("one ".utf8))
        running.send(Array("two".utf8))
        running.closeInput()
        #expect(await running.wait().output == "one two")
    }

    @Test func sendsSignalsAndKillsOnTimeout() async throws {
        var command = shell("")
        command.executable = "/usr/bin/python3"
        command.arguments = [
            "-c",
            """
            import signal, sys
            count = 0
            def caught(number, frame):
                global count
                count += 1
            signal.signal(signal.SIGINT, caught)
            print("ready", file=sys.stderr, flush=True)
            while count < 2: signal.pause()
            sys.exit(5)
            """,
        ]
        let running = try command.start()
        try await eventually("the program is ready") { !running.errorSoFar.isEmpty }
        running.signal(SIGINT)
        try await running.waitUntilTaken(SIGINT)
        running.signal(SIGINT)
        #expect(await running.wait().status == 5)
        #expect(!running.signal(SIGINT))
        var endless = shell("exec sleep 30")
        endless.timeLimit = .milliseconds(100)
        let result = try await endless.run()
        #expect(result.hasTimedOut && result.signal == SIGKILL)
    }

    @Test func providesTerminalOnStandardError() async throws {
        var command = shell("test -t 2 && test ! -t 1 && stty size <&2 && echo yes >&2")
        command.hasTerminal = true
        let result = try await command.run()
        #expect(result.status == 0, "\(result)")
        #expect(result.output == "24 120\n")
        #expect(result.error == "yes\r\n")
    }

    @Test(.enabled(if: !Sanitizer.isActive, "memory is not measured under a sanitizer"))
    func measuresPeakMemoryOfChildOnly() async throws {
        let script = "import os; data = bytearray(os.urandom(1 << 20)) * 160; print(len(data))"
        var command = shell("")
        command.executable = "/usr/bin/python3"
        command.arguments = ["-c", script]
        command.measuresMemory = true
        let large = try #require(try await command.run().peakMemoryInBytes)
        #expect(large > 160 << 20 && large < 200 << 20)
        command.arguments = ["-c", "import time; time.sleep(0.1)"]
        #expect(try #require(try await command.run().peakMemoryInBytes) < 40 << 20)
    }

    /// Otherwise the program would keep an origin's port open after the test has closed it.
    @Test func inheritsNoSockets() async throws {
        try await withOrigin { _ in
            let result = try await shell("ls -l /proc/self/fd | grep -c socket:").run()
            #expect(result.output == "0\n", "\(result)")
        }
    }

    @Test func reportsSpawnFailure() throws {
        var command = shell("")
        command.executable = "/no/such/program"
        #expect(throws: Command.SpawnFailed.self) { try command.start() }
    }
}
