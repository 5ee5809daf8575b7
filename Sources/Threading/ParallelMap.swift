extension Array where Element: Sendable {
    /// Transforms the elements on several threads, the calling one among them.
    ///
    /// - Parameters:
    ///   - workers: the number of threads, 1 or more; fewer run if the system has no room for them.
    ///   - name: the threads' name, at most 11 bytes.
    ///   - transform: called once for each element, on any of the threads.
    /// - Returns: the results in the elements' order.
    package func parallelMap<Result: Sendable>(
        workers: Int, name: String, _ transform: @escaping @Sendable (Element) -> Result
    ) -> [Result] {
        let work = Monitor(ParallelWork<Result>(results: map { _ in nil }))
        let step: @Sendable () -> Void = {
            while let next = work.update(wakes: { _ in false }, { $0.takeNext() }) {
                let result = transform(self[next])
                work.update(wakes: { _ in false }) { $0.results[next] = result }
            }
        }
        var threads: [OwnedThread] = []
        for number in 1..<Swift.max(Swift.min(workers, count), 1) {
            guard let thread = try? OwnedThread(name: "\(name) \(number)", step) else { break }
            threads.append(thread)
        }
        step()
        for thread in threads { thread.join() }
        return work.withLock { $0.results.compactMap(\.self) }
    }
}

private struct ParallelWork<Result: Sendable>: Sendable {
    /// Nil for an element that is not transformed yet.
    var results: [Result?]
    var next = 0

    mutating func takeNext() -> Int? {
        guard next < results.count else { return nil }
        defer { next += 1 }
        return next
    }
}
