import Codecs
import Glibc
import PrefetchModel
import Threading

/// A command that filters bodies, with pipes to its standard input and output.
///
/// For a process that ignores SIGPIPE.
///
/// `@unchecked Sendable`: ``BodyFilters`` gives it to one codec worker at a time, by a monitor.
final class FilterProcess: @unchecked Sendable {
    struct BodyLimits: Sendable {
        let maximumBytes: Int
        /// The flag that sets ``maximumBytes``, for messages.
        let flag: String
        /// From the first byte of the body to the last one of the image.
        let time: Duration
        let isCancelled: @Sendable () -> Bool
    }

    private let child: ChildProcess
    private var input: Int32
    private var output: Int32
    private var isOver = false
    /// Whether the process ended before it saw the last body.
    private(set) var isStale = false

    private static let noImage: UInt32 = .max
    private static let lengthBytes = 4
    private static let sliceMilliseconds: Int32 = 100
    private static let slice = Duration.milliseconds(sliceMilliseconds)

    init(_ command: String) throws {
        do {
            (child, input, output) = try ChildProcess.piped(shell: command)
        } catch {
            throw Failure(.bodyFilter, "cannot be started: \(error)")
        }
    }

    /// Sends a body, ends the input, and reads the whole output. `reserve` receives the bytes that
    /// the output takes in memory, as it grows.
    ///
    /// - Throws: a ``PrefetchModel/Failure`` also if the command fails.
    func filterAndEnd(
        _ body: UnsafeRawBufferPointer, _ limits: BodyLimits, _ reserve: (Int) -> Void
    ) throws -> [UInt8] {
        let end = ContinuousClock.now + limits.time
        do {
            let bytes = try exchange([], body, limits, until: end, endsInput: true, reserve) { _ in
                nil
            }
            while !child.hasEnded(by: min(end, .now + FilterProcess.slice)) {
                try FilterProcess.check(limits, end)
            }
            closeEnds()
            isOver = true
            // Its children must not outlive it.
            child.send(SIGKILL)
            if let problem = child.wait() { throw Failure(.bodyFilter, problem) }
            return bytes
        } catch {
            kill()
            throw error
        }
    }

    /// Ends the work at the limit of time, or when the run is cancelled.
    private static func check(_ limits: BodyLimits, _ end: ContinuousClock.Instant) throws {
        guard !limits.isCancelled() else { throw CodecError.cancelled }
        guard ContinuousClock.now < end else {
            throw Failure(
                .bodyFilter,
                "took longer than --max-decode-time (\(limits.time.quantityDescription))")
        }
    }

    /// Whether the process can take another frame: it runs, has not closed its input, and has sent
    /// no more than its results.
    var isInStep: Bool {
        var waits = [
            pollfd(fd: output, events: Int16(POLLIN), revents: 0),
            // Reports only POLLERR: the process has closed its input.
            pollfd(fd: input, events: 0, revents: 0),
        ]
        return input >= 0 && poll(&waits, nfds_t(waits.count), 0) == 0
    }

    /// Sends a body as a frame, and reads the frame of its image: nil for a body without one.
    /// After an error the process must be ended.
    func filterFrame(
        _ body: UnsafeRawBufferPointer, _ limits: BodyLimits, _ reserve: (Int) -> Void
    ) throws -> ArraySlice<UInt8>? {
        guard body.count < Int(FilterProcess.noImage) else {
            throw Failure(.bodyFilter, "a frame has less than 4 GiB")
        }
        let length = withUnsafeBytes(of: UInt32(body.count).bigEndian) { Array($0) }
        let end = ContinuousClock.now + limits.time
        let frame = try exchange(
            length, body, limits, until: end, endsInput: false, reserve
        ) { answer in
            FilterProcess.length(of: answer).map { FilterProcess.lengthBytes + $0 }
        }
        let hasNoImage = frame.prefix(FilterProcess.lengthBytes).allSatisfy { $0 == 0xFF }
        let count = FilterProcess.length(of: frame) ?? 0
        guard frame.count == FilterProcess.lengthBytes + count else {
            throw Failure(.bodyFilter, "the answer is longer than its frame")
        }
        return hasNoImage ? nil : frame.dropFirst(FilterProcess.lengthBytes)
    }

    /// The length at the beginning of a result: 0 for ``noImage``, nil before it is whole.
    private static func length(of answer: [UInt8]) -> Int? {
        guard answer.count >= lengthBytes else { return nil }
        let length = answer.prefix(lengthBytes).reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
        return length == noImage ? 0 : Int(length)
    }

    func kill() {
        closeEnds()
        guard !isOver else { return }
        isOver = true
        child.send(SIGKILL)
        _ = child.wait()
    }

    /// Lets a process that speaks frames end by itself until `deadline`, after ``endInput()``.
    func finish(by deadline: ContinuousClock.Instant) {
        closeEnds()
        guard child.hasEnded(by: deadline) else { return kill() }
        isOver = true
        _ = child.wait()
    }

    private func closeEnds() {
        endInput()
        if output >= 0 { close(output) }
        output = -1
    }

    func endInput() {
        if input >= 0 { close(input) }
        input = -1
    }

    /// Writes and reads at the same time, so that neither side waits for the other. `size` tells
    /// the size of an answer with this beginning, nil while it is not known. Without a size, the
    /// answer ends with the output.
    private func exchange(
        _ head: [UInt8], _ body: UnsafeRawBufferPointer, _ limits: BodyLimits,
        until end: ContinuousClock.Instant, endsInput: Bool, _ reserve: (Int) -> Void,
        size: ([UInt8]) -> Int?
    ) throws -> [UInt8] {
        var answer: [UInt8] = []
        var capacity = 0
        var written = 0
        let total = head.count + body.count
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            if written == total, endsInput { endInput() }
            if let size = size(answer), answer.count >= size, written == total { return answer }
            try FilterProcess.check(limits, end)
            var waits = [pollfd(fd: output, events: Int16(POLLIN), revents: 0)]
            if written < total, input >= 0 {
                waits.append(pollfd(fd: input, events: Int16(POLLOUT), revents: 0))
            }
            guard poll(&waits, nfds_t(waits.count), FilterProcess.sliceMilliseconds) > 0 else {
                continue
            }
            if waits.count > 1, waits[1].revents != 0 {
                written += try write(head, body, from: written)
            }
            guard waits[0].revents != 0 else { continue }
            let count = read(output, &buffer, buffer.count)
            if count > 0 {
                let needed = max(answer.count + count, size(answer) ?? 0)
                let most = limits.maximumBytes + FilterProcess.lengthBytes
                guard needed <= most else {
                    throw Failure(
                        .bodyFilter, "more than \(ByteCount(limits.maximumBytes)) (\(limits.flag))")
                }
                if needed > capacity {
                    let grown = max(needed, min(most, capacity + capacity / 2))
                    reserve(grown - capacity)
                    capacity = grown
                    answer.reserveCapacity(grown)
                }
                answer += buffer[..<count]
            } else if count == 0 {
                guard endsInput else {
                    isStale = answer.isEmpty
                    throw Failure(.bodyFilter, "ended without an answer")
                }
                return answer
            } else if errno != EAGAIN, errno != EINTR {
                throw Failure(.bodyFilter, "cannot be read: \(String(cString: strerror(errno)))")
            }
        }
    }

    /// - Returns: the number of bytes written. A command that reads no further may still answer.
    private func write(
        _ head: [UInt8], _ body: UnsafeRawBufferPointer, from start: Int
    ) throws -> Int {
        let count =
            start < head.count
            ? head[start...].withUnsafeBytes { Glibc.write(input, $0.baseAddress, $0.count) }
            : Glibc.write(
                input, body.baseAddress.map { $0 + (start - head.count) },
                body.count - (start - head.count))
        if count >= 0 { return count }
        switch errno {
        case EAGAIN, EINTR: return 0
        case EPIPE:
            endInput()
            return head.count + body.count - start
        default:
            throw Failure(.bodyFilter, "cannot be written: \(String(cString: strerror(errno)))")
        }
    }
}
