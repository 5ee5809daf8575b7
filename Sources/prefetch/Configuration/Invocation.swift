import ArgumentParser

/// The settings of a call that are not arguments: the tables of its configuration files.
struct Invocation: Sendable {
    var hosts = ConfiguredHosts()
    var lists = ConfiguredLists()
}

/// A command that uses tables of configuration files. `main` passes them on.
protocol InvokedCommand: ParsableCommand {
    mutating func run(_ invocation: Invocation) throws
}

extension ParsableCommand {
    /// Runs the command, with the invocation if it takes one.
    mutating func start(_ invocation: Invocation) throws {
        guard var invoked = self as? any InvokedCommand else { return try run() }
        try invoked.run(invocation)
    }
}
