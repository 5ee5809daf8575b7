import Foundation
import PrefetchModel
import Testing

@testable import Reporting

@Suite(.timeLimit(.minutes(15)))
struct GitHubActionsTests {
    private func actions(
        summary: String? = nil, output: String? = nil, ignoresKnown: Bool = false
    ) -> GitHubActions {
        GitHubActions(summaryPath: summary, outputPath: output, ignoresKnown: ignoresKnown)
    }

    @Test func escapesLikeTheToolkit() {
        #expect(WorkflowCommand.data("50%\r\n:,") == "50%25%0D%0A:,")
        #expect(WorkflowCommand.property("50%\r\n:,") == "50%25%0D%0A%3A%2C")
        #expect(WorkflowCommand.defused("a\n ::x\n##[x] a::b") == "a\n : :x\n## [x] a::b")
        #expect(
            WorkflowCommand.defused("\u{A0}:::x\r##vso[x] ### a##1")
                == "\u{A0}: ::x\r## vso[x] ### a##1")
        #expect(
            WorkflowCommand.defused("{\"a\":\"###[x]\"}\n##[y]")
                == "{\"a\":\"#\\u0023\\u0023[x]\"}\n## [y]")
        #expect(
            WorkflowCommand.annotation(
                "error", file: "a,b:c.txt", line: 3, title: "t", message: "x::y")
                == "::error file=a%2Cb%3Ac.txt,line=3,title=t::x::y")
    }

    @Test(arguments: [(1, 1), (9, 9), (10, 10), (50, 10)])
    func nineFailuresAndTheRest(failures: Int, expected: Int) throws {
        var actions = actions()
        for line in 1...failures { actions.note(Samples.failed(line: line)) }
        let commands = actions.annotations(Samples.summary())
        #expect(commands.count == expected)
        #expect(
            commands.first
                == "::error file=m.txt,line=1,title=http-status::https://example.org/1.jpg: "
                + "404 Not Found")
        if failures > 9 {
            #expect(commands.last == "::error title=prefetch::and \(failures - 9) more")
        }
    }

    /// An annotation has the place of a file in the repository, or none.
    @Test(arguments: ["-", "https://example.org/list.txt"])
    func listsElsewhereAreNoFiles(manifest: String) {
        var actions = actions()
        actions.note(Samples.failed(line: 1, manifest: manifest))
        let commands = actions.annotations(Samples.summary())
        #expect(commands.count == 1)
        #expect(commands[0].hasPrefix("::error title=http-status::"), "\(commands)")
    }

    @Test func fatalErrorsTakeOnePlace() {
        var actions = actions()
        for line in 1...20 { actions.note(Samples.failed(line: line, manifest: "-")) }
        var summary = Samples.summary(exitStatus: 2)
        summary.fatalMessage = "/c: No space left"
        let commands = actions.annotations(summary)
        #expect(commands.count == 10)
        #expect(commands[0] == "::error title=prefetch::/c: No space left")
        #expect(commands[1].hasPrefix("::error title=http-status::"))
        #expect(commands[9] == "::error title=prefetch::and 12 more")
    }

    @Test func toleratedFailuresAreWarnings() {
        var actions = actions()
        actions.note(Samples.failed(line: 1))
        let commands = actions.annotations(Samples.summary(exitStatus: 0))
        #expect(commands.count == 1 && commands[0].hasPrefix("::warning file="))
    }

    @Test func knownFailuresMayBeIgnored() {
        var known = Samples.failed(line: 1)
        known.isKnown = true
        var blacklisted = Samples.failed(line: 2)
        blacklisted.outcome = .blacklisted
        for ignoresKnown in [false, true] {
            var actions = actions(ignoresKnown: ignoresKnown)
            for result in [known, blacklisted] { actions.note(result) }
            #expect(
                actions.annotations(Samples.summary()).count == (ignoresKnown ? 0 : 2))
        }
    }

    @Test(arguments: HostileTexts.all)
    func hostileTextStaysInItsAnnotation(text: String) {
        var actions = actions()
        var result = Samples.failed(
            line: 1, manifest: text, reason: .invalidEntry, message: text)
        result.url = text
        actions.note(result)
        let commands = actions.annotations(Samples.summary())
        #expect(commands.count == 1)
        #expect(commands[0].hasPrefix("::error file="))
        #expect(!commands[0].utf8.contains { $0 < 0x20 })
        // The properties end at the first `::` after the command.
        let properties = commands[0].dropFirst(2).split(separator: "::")[0]
        #expect(properties.hasSuffix(",line=1,title=invalid-entry"))
    }

    @Test(arguments: HostileTexts.all)
    func hostileTextIsNoMarkup(text: String) {
        let cell = StepSummary.cell(text)
        for character in "|`<>*_[]()~$\\\n\r:.@" {
            #expect(!cell.contains(character), "\(cell)")
        }
    }

    /// Nothing that a list or server says is a command of the runner.
    @Test(arguments: HostileTexts.all)
    func hostileTextIsDefusedOnTheTerminal(text: String) throws {
        let captured = try Samples.captured { output, error in
            var configuration = RunReporter.Settings()
            configuration.standardOutput = output
            configuration.standardError = error
            configuration.verbosity = .verbose
            configuration.actions = actions()
            let reporter = RunReporter(configuration)
            var result = Samples.failed(line: 1, manifest: text, message: text)
            result.outcome = .excluded
            try reporter.entryFinished(result)
            reporter.message(text)
            try reporter.finish(Samples.summary(), style: .text)
        }
        // As it is written to standard error. By Unicode scalars, like the runner.
        let printed = WorkflowCommand.defused(captured.error)
        let lines = printed.unicodeScalars.split { $0 == "\n" || $0 == "\r" }
        #expect(
            !lines.contains { line in
                line.drop { $0.properties.isWhitespace }.starts(with: "::".unicodeScalars)
            }, "\(printed)")
        #expect(!printed.unicodeScalars.contains("##[".unicodeScalars))
        #expect(captured.output.isEmpty)
    }

    @Test func filesAreAppendedTo() throws {
        try Samples.withTemporaryPath { path in
            let output = path + ".output"
            for file in [path, output] { try Data("before\n".utf8).write(to: URL(filePath: file)) }
            var text = SummaryText()
            for line in 1...13 { text.note(Samples.failed(line: line, host: "h\(line)|")) }
            let summary = Samples.summary()
            let problems = actions(summary: path, output: output)
                .append(summary, text.listedGroups(summary))
            #expect(problems.isEmpty)
            #expect(try Samples.text(of: output) == "before\nchanged=2950\nfailed=13\n")
            let markdown = try Samples.text(of: path)
            #expect(
                markdown.hasPrefix(
                    "before\n### prefetch: 3000 entries in 4.2 s, exit status 1\n"))
            #expect(markdown.contains("\n| downloaded | 2950 |\n"))
            #expect(markdown.contains("\n| 1 | http-status 404 | https&#58;//h1&#124; | "))
            #expect(markdown.contains("\nand 3 more\n"))
        }
    }

    @Test func missingFilesAreNamedAndNotCreated() throws {
        try Samples.withTemporaryPath { path in
            let problems = actions(summary: path, output: path + "/x")
                .append(Samples.summary(), [])
            #expect(
                problems == [
                    "$GITHUB_STEP_SUMMARY: \(path): cannot open: No such file or directory",
                    "$GITHUB_OUTPUT: \(path)/x: cannot open: No such file or directory",
                ])
            #expect(!FileManager.default.fileExists(atPath: path))
        }
    }
}
