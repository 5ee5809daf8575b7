/// Where a run hears of everything that happens.
protocol EventSource: AnyObject {
    /// Waits until something is there or `deadline` passes; takes all events and, if wanted, the next
    /// input.
    func take(
        wantsInput: Bool, until deadline: ContinuousClock.Instant?
    ) -> (events: [Mailbox.Event], input: Mailbox.Input?)

    /// Makes the readers stop at their next batch.
    func endReading()
}
