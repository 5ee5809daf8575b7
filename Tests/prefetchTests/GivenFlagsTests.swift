import Testing

@testable import prefetch

/// The user's own flags on a command line.
@Suite(.timeLimit(.minutes(15)))
struct GivenFlagsTests {
    @Test(
        arguments: [
            (["-j8", "a"], ["jobs"]), (["-j", "8", "a"], ["jobs"]), (["-qj8"], ["jobs", "quiet"]),
            (["-4q"], ["ipv4", "quiet"]), (["--jobs=8"], ["jobs"]), (["--", "-q"], []),
            (["a", "--quality", "3", "--", "--jobs"], ["quality"]), (["-"], []),
            (["--unknown"], []),
            (["--header", "@a", "--header=b"], ["header"]),
        ] as [([String], [String])])
    func findsTheFlagsOfACommandLine(arguments: [String], names: [String]) {
        #expect(GivenFlags(arguments, of: RunFlags.all).arguments.keys.sorted() == names)
    }

    @Test func findsTheArgumentsOfAFlag() {
        let flags = GivenFlags(["--header", "@a", "x", "--header=b", "-j", "4"], of: RunFlags.all)
        #expect(flags.arguments["header"] == ["--header", "@a", "--header=b"])
        #expect(flags.arguments["jobs"] == ["-j", "4"])
        #expect(flags.value(of: HostFlags.flags.jobs.row) == "4")
    }
}
