/// The source of all events of a run.
protocol EventSource: AnyObject {
    /// Waits for an event or the `deadline`; returns all events and, if wanted, the next input.
    func take(
        wantsInput: Bool, until deadline: ContinuousClock.Instant?
    ) -> (events: [Mailbox.Event], input: Mailbox.ListInput?)

    func endReading()
}
