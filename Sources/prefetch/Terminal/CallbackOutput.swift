import Reporting

/// Writes lines to standard output from callbacks that cannot throw. ``finish()`` throws the first
/// error; nothing is written after it.
final class CallbackOutput {
    private var lines = LineWriter.standardOutput()
    private var failure: (any Error)?

    func write(_ line: String) { attempt { try $0.write(line: line) } }
    func write(_ object: JSONObject) { attempt { try $0.write(object) } }

    func finish() throws {
        if let failure { throw failure }
        try lines.finish()
    }

    private func attempt(_ write: (inout LineWriter) throws -> Void) {
        guard failure == nil else { return }
        do {
            try write(&lines)
        } catch {
            failure = error
        }
    }
}
