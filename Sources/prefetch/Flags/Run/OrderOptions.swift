import ArgumentParser
import Pipeline
import PrefetchModel

/// Flags of `run` about the order in which entries start.
struct OrderOptions: ParsableArguments {
    @Option(RunFlags.order) var order: StartOrder
    @Option(RunFlags.queueCapacity) var queueCapacity: Int

    func validate() throws {
        guard queueCapacity >= 1 else {
            throw ValidationError("--queue-capacity must be at least 1")
        }
    }

    func apply(to configuration: inout RunConfiguration) {
        configuration.queue.order = order
        configuration.queue.capacity = queueCapacity
    }
}
