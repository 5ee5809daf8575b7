/// The start of the tests' clock.
let epoch = ContinuousClock.now
func at(_ seconds: Double) -> ContinuousClock.Instant { epoch + .seconds(seconds) }
