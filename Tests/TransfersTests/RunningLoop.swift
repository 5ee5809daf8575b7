import Foundation
import PrefetchModel
import TestSupport
import Testing
import Threading
import URLParsing

@testable import Transfers

/// A transfer loop on its own thread. Each request returns its completion, so that requests can
/// follow one another on the same handles and connections.
final class RunningLoop: Sendable {
    private let loop: TransferLoop
    private let waiting = Monitor([Int: CheckedContinuation<TransferCompletion, Never>]())
    private let lastID = Monitor(0)

    fileprivate init(_ configuration: TransferConfiguration) throws {
        loop = try TransferLoop(configuration: configuration) { Timestamp(milliseconds: 1_000) }
    }

    func get(
        _ url: String, fields: [HeaderField] = [], addressRule: AddressRule? = nil
    ) async -> TransferCompletion {
        await get {
            TransferRequest(
                id: $0, url: RequestURL(parsing: url), fields: fields, addressRule: addressRule)
        }
    }

    func get(_ request: (Int) -> TransferRequest) async -> TransferCompletion {
        let identifier = lastID.withLock { last in
            last += 1
            return last
        }
        let request = request(identifier)
        return await withCheckedContinuation { continuation in
            waiting.withLock { $0[identifier] = continuation }
            loop.start([request])
        }
    }

    fileprivate func run() throws {
        try loop.run { completions in
            for completion in completions {
                waiting.withLock { $0.removeValue(forKey: completion.id) }?.resume(
                    returning: completion)
            }
        }
    }

    func cancelAll() { loop.cancelAll() }

    fileprivate func stop() { loop.stop() }
}

func withLoop(
    _ configuration: TransferConfiguration = TransferConfiguration(userAgent: "prefetch-tests"),
    _ body: (RunningLoop) async throws -> Void
) async throws {
    let loop = try RunningLoop(configuration)
    let (ended, continuation) = AsyncStream.makeStream(of: Void.self)
    let thread = Thread {
        do { try loop.run() } catch { Issue.record(error) }
        continuation.finish()
    }
    thread.start()
    let result: Result<Void, any Error>
    do { result = .success(try await body(loop)) } catch { result = .failure(error) }
    loop.stop()
    for await _ in ended {}
    try result.get()
}

extension RequestURL {
    /// Parses like a manifest. Text that the parser refuses is kept, so that libcurl must refuse
    /// it.
    init(parsing text: String) {
        self = (try? URLParser().parse(text.utf8)) ?? RequestURL(normalized: text)
    }
}

extension TransferCompletion {
    var status: Int? {
        guard case .response(let head, _) = result else { return nil }
        return head.status
    }

    var failure: TransferFailure? {
        guard case .failure(let failure) = result else { return nil }
        return failure
    }
}
