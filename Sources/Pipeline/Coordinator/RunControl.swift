/// How other threads reach a run.
package final class RunControl: Sendable {
    let mailbox = Mailbox()

    package init() {}

    /// Stops the run because of a signal: nothing more starts, what runs is finished or cancelled
    /// within ten seconds, and what is stored is committed. Any thread may call it.
    package func stop(signal: Int32) {
        mailbox.put(.stop(signal: signal))
    }
}
