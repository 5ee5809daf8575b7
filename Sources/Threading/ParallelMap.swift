extension Array where Element: Sendable {
    /// Transforms the elements, in order, on several threads, the calling one among them; fewer if
    /// the system has no room for them. `name` has at most 11 bytes.
    package func parallelMap<Result: Sendable>(
        workers: Int, name: String, _ transform: @escaping @Sendable (Element) -> Result
    ) -> [Result] {
        let work = Monitor((results: map { _ in Result?.none }, next: 0))
        let step: @Sendable () -> Void = {
            func next() -> Int? {
                work.withLock { work in
                    defer { work.next += 1 }
                    return work.next < work.results.count ? work.next : nil
                }
            }
            while let index = next() {
                let result = transform(self[index])
                work.withLock { $0.results[index] = result }
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
