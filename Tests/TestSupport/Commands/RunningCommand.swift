import Dispatch
import Foundation
import Glibc
import PrefetchModel
import Threading

/// A started program that may still be running.
package final class RunningCommand: Sendable {
    private struct State {
        var output: [UInt8] = []
        var error: [UInt8] = []
        var input: Int32?
        var openStreams = 2
        /// Set before the process is reaped, since its identifier may be reused afterwards.
        var isCollected = false
        var hasTimedOut = false
        var sampledMemory = 0
        var ending: (status: Int32, usage: rusage, time: Duration)?
        var result: CommandResult?
        var waiters: [CheckedContinuation<CommandResult, Never>] = []
    }

    private let command: Command
    private let startedAt: ContinuousClock.Instant
    private let memoryOfTests: Int
    private let state: Monitor<State>
    package let process: Int32

    init(
        command: Command, process: pid_t, startedAt: ContinuousClock.Instant, output: Int32,
        error: Int32, input: Int32?
    ) {
        self.command = command
        self.process = process
        self.startedAt = startedAt
        // After the start, since other tests allocate concurrently.
        memoryOfTests = command.measuresMemory ? RunningCommand.peakMemoryInBytes(of: "self") : 0
        var initial = State()
        initial.input = input
        state = Monitor(initial)
        Thread.detachNewThread { self.drain(output, into: \.output) }
        Thread.detachNewThread { self.drain(error, into: \.error) }
        Thread.detachNewThread { self.collect() }
        if command.measuresMemory { Thread.detachNewThread { self.sampleMemory() } }
        if case .bytes(let bytes) = command.input {
            Thread.detachNewThread {
                self.send(bytes)
                self.closeInput()
            }
        }
        let (seconds, attoseconds) = command.timeLimit.components
        let limit = Double(seconds) + Double(attoseconds) * 1e-18
        DispatchQueue.global().asyncAfter(deadline: .now() + limit) { [weak self] in
            guard let self else { return }
            // In one step, since the program may be collected immediately.
            self.state.withLock { state in
                guard !state.isCollected, kill(self.process, SIGKILL) == 0 else { return }
                state.hasTimedOut = true
            }
        }
    }

    /// Sends a signal; false if the program has already ended.
    @discardableResult
    package func signal(_ number: Int32) -> Bool {
        state.withLock { state in !state.isCollected && kill(process, number) == 0 }
    }

    /// Waits until the program has received a signal that it handles or blocks, or has ended.
    /// Otherwise two equal signals in a row would be merged.
    package func waitUntilTaken(_ number: Int32) async throws {
        try await eventually("signal \(number) is taken") {
            let status = RunningCommand.status(of: "\(process)")
            return !["SigPnd", "ShdPnd"].contains { name in
                let pending = status[name].flatMap { UInt64($0, radix: 16) } ?? 0
                return pending & (1 << UInt64(number - 1)) != 0
            }
        }
    }

    /// Whether the program's main thread blocks the signal.
    package func blocks(_ number: Int32) -> Bool {
        let blacklisted = RunningCommand.status(of: "\(process)")["SigBlk"]
        let mask = blacklisted.flatMap { UInt64($0, radix: 16) } ?? 0
        return mask & (1 << UInt64(number - 1)) != 0
    }

    /// Writes to standard input; does nothing if the program no longer reads it.
    package func send(_ bytes: [UInt8]) {
        guard let descriptor = state.withLock({ $0.input }) else { return }
        var start = 0
        while start < bytes.count {
            let count = bytes[start...].withUnsafeBytes {
                write(descriptor, $0.baseAddress, $0.count)
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return }
            start += count
        }
    }

    /// Closes standard input.
    package func closeInput() {
        let descriptor = state.withLock { state in
            defer { state.input = nil }
            return state.input
        }
        if let descriptor { close(descriptor) }
    }

    /// The standard output so far.
    package var outputSoFar: String {
        String(decoding: state.withLock { $0.output }, as: UTF8.self)
    }

    /// The standard error so far.
    package var errorSoFar: String {
        String(decoding: state.withLock { $0.error }, as: UTF8.self)
    }

    /// Waits until the program has ended and both its streams are read to their ends.
    package func wait() async -> CommandResult {
        await withCheckedContinuation { continuation in
            let result = state.withLock { state in
                if state.result == nil { state.waiters.append(continuation) }
                return state.result
            }
            if let result { continuation.resume(returning: result) }
        }
    }

    private func drain(
        _ descriptor: Int32, into stream: any WritableKeyPath<State, [UInt8]> & Sendable
    ) {
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            let count = read(descriptor, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            // A terminal with a closed other end returns an error.
            guard count > 0 else { break }
            state.withLock { $0[keyPath: stream].append(contentsOf: buffer[..<count]) }
        }
        close(descriptor)
        state.withLock { $0.openStreams -= 1 }
        finish()
    }

    private func collect() {
        var information = siginfo_t()
        while waitid(P_PID, id_t(process), &information, WEXITED | WNOWAIT) != 0, errno == EINTR {}
        let time = ContinuousClock.now - startedAt
        state.withLock { state in
            var status: Int32 = 0
            var usage = rusage()
            while wait4(process, &status, 0, &usage) < 0, errno == EINTR {}
            state.isCollected = true
            state.ending = (status, usage, time)
        }
        closeInput()
        finish()
    }

    private func finish() {
        let (result, waiters) = state.withLock {
            state -> (CommandResult?, [CheckedContinuation<CommandResult, Never>]) in
            guard let ending = state.ending, state.openStreams == 0, state.result == nil else {
                return (nil, [])
            }
            // The kernel attributes the tests' memory at the start to the program. If its figure is
            // larger, it is the program's own peak; otherwise the samples are used.
            let counted = ending.usage.ru_maxrss * 1024
            let peak = counted > memoryOfTests ? counted : state.sampledMemory
            let result = CommandResult(
                command: command, output: state.output, error: state.error,
                waitStatus: ending.status, hasTimedOut: state.hasTimedOut, time: ending.time,
                processorTime: ending.usage.ru_utime.duration + ending.usage.ru_stime.duration,
                peakMemoryInBytes: command.measuresMemory ? peak : nil)
            state.result = result
            defer { state.waiters = [] }
            return (result, state.waiters)
        }
        guard let result else { return }
        for waiter in waiters { waiter.resume(returning: result) }
    }

    /// Samples the peak every 10 ms; peaks only grow, so little is missed.
    private func sampleMemory() {
        let own = FileManager.default.contents(atPath: "/proc/self/cmdline")
        while !state.withLock({ $0.isCollected }) {
            defer { poll(nil, 0, 10) }
            // Until `exec`, the process has the memory of the tests.
            let line = FileManager.default.contents(atPath: "/proc/\(process)/cmdline")
            guard line != own else { continue }
            let peak = RunningCommand.peakMemoryInBytes(of: "\(process)")
            state.withLock { $0.sampledMemory = max($0.sampledMemory, peak) }
        }
    }

    static func peakMemoryInBytes(of process: String) -> Int {
        let text = status(of: process)["VmHWM"] ?? ""
        return (Int(text.split(separator: " ").first ?? "") ?? 0) * 1024
    }

    /// The fields of `/proc/PROCESS/status`; empty without such a process.
    private static func status(of process: String) -> [String: String] {
        let bytes = FileManager.default.contents(atPath: "/proc/\(process)/status") ?? Data()
        var fields: [String: String] = [:]
        for line in String(decoding: bytes, as: UTF8.self).split(separator: "\n") {
            guard let colon = line.firstIndex(of: ":") else { continue }
            let value = line[line.index(after: colon)...]
            fields[String(line[..<colon])] = value.trimmingCharacters(in: .whitespaces)
        }
        return fields
    }
}

extension timeval {
    fileprivate var duration: Duration { .seconds(tv_sec) + .microseconds(tv_usec) }
}
