import Codecs
import PrefetchModel
import Threading

/// The filters of a run, with the processes of those that speak frames.
///
/// Each process serves one codec worker at a time, so that there are as many as workers at most.
final class BodyFilters: Sendable {
    private let filters: [BodyFilterName: BodyFilter]
    private let maximumBytes: Int
    private let time: Duration
    private let cancellation: Cancellation
    private let idle = Monitor<[String: [FilterProcess]]>([:])

    init(_ configuration: RunConfiguration, _ cancellation: Cancellation) {
        filters = configuration.bodies.filters
        maximumBytes = configuration.limits.maximumBodySize.bytes
        time = configuration.images.maximumDecodeTime
        self.cancellation = cancellation
    }

    /// Makes the image of a body.
    ///
    /// - Throws: ``FilterProcess/Problem``, whatever the cause.
    func image(
        of body: UnsafeRawBufferPointer, by name: BodyFilterName
    ) throws(FilterProcess.Problem) -> [UInt8] {
        switch filters[name] {
        case nil:
            throw FilterProcess.Problem(message: "unknown")
        case .base64?:
            guard let bytes = Base64.decode(body) else {
                throw FilterProcess.Problem(message: "the body is not base64")
            }
            return bytes
        case .command(let command, speaksFrames: false)?:
            return try FilterProcess(command).filterAndEnd(body, limits)
        case .command(let command, speaksFrames: true)?:
            let process: FilterProcess
            if let idle = takeIdle(command) {
                process = idle
            } else {
                process = try FilterProcess(command)
            }
            let answer: [UInt8]?
            do throws(FilterProcess.Problem) {
                answer = try process.filterFrame(body, limits)
            } catch {
                process.kill()
                throw error
            }
            idle.withLock { $0[command, default: []].append(process) }
            guard let answer else {
                throw FilterProcess.Problem(message: "the command finds no image in the body")
            }
            return answer
        }
    }

    private var limits: FilterProcess.Limits {
        FilterProcess.Limits(maximumBytes: maximumBytes, time: time) { [cancellation] in
            cancellation.isCancelled
        }
    }

    private func takeIdle(_ command: String) -> FilterProcess? {
        idle.withLock { $0[command]?.popLast() }
    }

    /// Ends the processes that speak frames.
    func finish() {
        for process in idle.withLock({ $0.values.flatMap(\.self) }) { process.finish() }
        idle.withLock { $0 = [:] }
    }
}
