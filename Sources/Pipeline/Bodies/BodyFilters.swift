import Codecs
internal import Hashing
package import PrefetchModel
import Threading

/// A filter that turns a response's body into an image before anything is judged.
///
/// A command reads a body on its standard input, writes the image to its standard output, and exits
/// with 0. One that speaks frames serves many bodies: each is preceded by its length, 4 bytes in
/// network order, and so is each result, in the same order. The length 0xFFFFFFFF as a result
/// means that the body has no image.
package enum BodyFilter: Hashable, Sendable {
    /// Base64 (RFC 4648), also of `data:` URLs.
    case base64
    case command(String, speaksFrames: Bool)

    private static let frames = "frames:"

    /// Parses `base64`, `CMD` for the shell, or `frames:CMD`; nil for an empty command.
    package init?(_ text: String) {
        let speaksFrames = text.hasPrefix(BodyFilter.frames)
        let command = speaksFrames ? String(text.dropFirst(BodyFilter.frames.count)) : text
        guard !command.allSatisfy(\.isWhitespace) else { return nil }
        self =
            text == BodyFilterName.base64.description
            ? .base64 : .command(command, speaksFrames: speaksFrames)
    }

    package var name: BodyFilterName {
        switch self {
        case .base64: return .base64
        case .command(let command, speaksFrames: _):
            let digest = SHA256Hasher().digest(of: command).description
            guard let name = BodyFilterName("command-" + digest.prefix(16)) else {
                preconditionFailure("a digest is made of digits and letters")
            }
            return name
        }
    }
}

/// The filters of a run, with the processes of filters that speak frames.
///
/// Each process serves one codec worker at a time, so that there are as many as workers at most.
final class BodyFilters: Sendable {
    private let filters: [BodyFilterName: BodyFilter]
    private let limits: FilterProcess.BodyLimits
    private let idle = Monitor<[String: [FilterProcess]]>([:])

    init(_ configuration: RunConfiguration, _ cancellation: Cancellation) {
        filters = configuration.bodies.filters
        let (size, memory) = (
            configuration.limits.maximumBodySize.bytes, configuration.images.bodyBudget.bytes
        )
        limits = FilterProcess.BodyLimits(
            maximumBytes: min(size, memory),
            flag: size <= memory ? "--max-filesize" : "a quarter of --memory",
            time: configuration.images.maximumDecodeTime
        ) { cancellation.isCancelled }
    }

    /// Makes the image of a body. `reserve` receives the bytes that the image takes in memory, as
    /// it grows.
    func image(
        of body: UnsafeRawBufferPointer, by name: BodyFilterName, reserve: (Int) -> Void
    ) throws -> ArraySlice<UInt8> {
        switch filters[name] {
        case nil:
            throw Failure(.bodyFilter, "unknown")
        case .base64?:
            guard let bytes = [UInt8](base64: body) else {
                throw Failure(.bodyFilter, "the body is not base64")
            }
            reserve(bytes.count)
            return bytes[...]
        case .command(let command, speaksFrames: false)?:
            return try FilterProcess(command).filterAndEnd(body, limits, reserve)[...]
        case .command(let command, speaksFrames: true)?:
            guard let answer = try answer(to: body, by: command, reserve) else {
                throw Failure(.bodyFilter, "the command finds no image in the body")
            }
            return answer
        }
    }

    /// Sends a frame; nil for a body without an image.
    private func answer(
        to body: UnsafeRawBufferPointer, by command: String, _ reserve: (Int) -> Void
    ) throws -> ArraySlice<UInt8>? {
        while let process = takeIdle(command) {
            // A process out of step would give each body the image of an earlier one.
            guard process.isInStep else {
                process.kill()
                continue
            }
            do {
                return try answer(to: body, by: process, command, reserve)
            } catch {
                guard process.isStale else { throw error }
            }
        }
        return try answer(to: body, by: FilterProcess(command), command, reserve)
    }

    private func answer(
        to body: UnsafeRawBufferPointer, by process: FilterProcess, _ command: String,
        _ reserve: (Int) -> Void
    ) throws -> ArraySlice<UInt8>? {
        do {
            let answer = try process.filterFrame(body, limits, reserve)
            idle.withLock { $0[command, default: []].append(process) }
            return answer
        } catch {
            process.kill()
            throw error
        }
    }

    private func takeIdle(_ command: String) -> FilterProcess? {
        idle.withLock { $0[command]?.popLast() }
    }

    /// Ends the processes that speak frames, within a second or so.
    func finish() {
        let processes = idle.withLock { idle in
            defer { idle = [:] }
            return idle.values.flatMap(\.self)
        }
        for process in processes { process.endInput() }
        let deadline = ContinuousClock.now + .seconds(1)
        for process in processes { process.finish(by: deadline) }
    }
}
