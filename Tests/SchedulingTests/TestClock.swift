/// The tests' clock: seconds after a moment.
let epoch = ContinuousClock.now
func at(_ seconds: Double) -> ContinuousClock.Instant { epoch + .seconds(seconds) }
