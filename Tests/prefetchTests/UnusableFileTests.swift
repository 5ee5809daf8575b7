import Foundation
import Glibc
import TestSupport
import Testing

@testable import prefetch

/// Files that flags of `run` name and that it cannot use. It ends before any request.
@Suite(.timeLimit(.minutes(15)))
struct UnusableFileTests {
    /// `NAME` is the file of a flag's value.
    @Test(arguments: [
        ("--header", "@NAME", "missing"), ("--user", "@NAME", "missing"),
        ("--proxy", "@NAME", "missing"), ("--netrc-file", "NAME", "missing"),
        ("--cacert", "NAME", "missing"), ("--cacert", "NAME", "empty.txt"),
        ("--cookie-jar", "NAME/jar", "missing"), ("--cookie-jar", "NAME", "."),
        ("--header", "@NAME", "."),
    ])
    func theMessageNamesTheFile(flag: String, value: String, name: String) throws {
        try withFolder { folder in
            try "".write(toFile: folder + "/empty.txt", atomically: true, encoding: .utf8)
            let path = "\(folder)/\(name)"
            let refusal = try #require(
                try ParsedRun.refusal([flag, value.replacing("NAME", with: path)]))
            #expect(refusal.status == 2)
            #expect(refusal.text.contains(path) && refusal.hint != nil, "\(refusal)")
        }
    }

    /// A pipe without a writer would wait without end.
    @Test(arguments: [
        ("--cookie-jar", ""), ("--netrc-file", ""), ("--cacert", ""), ("--header", "@"),
        ("--user", "@"), ("--proxy", "@"),
    ])
    func aNamedPipeIsRefused(flag: String, mark: String) throws {
        try withFolder { folder in
            try #require(mkfifo(folder + "/pipe", 0o600) == 0)
            let refusal = try #require(
                try ParsedRun.refusal([flag, "\(mark)\(folder)/pipe"]))
            #expect(refusal.status == 2)
            #expect(refusal.text.contains("pipe: not a regular file"), "\(refusal)")
        }
    }

    /// Files other than cookie jars stay as they are.
    @Test(arguments: [
        "https://a.example/1.jpg\n", "[{\"name\": \"a\"}]\n",
        "# a comment\nhttps://a.example\n", "a.example\tTRUE\t/\tFALSE\t0\n",
        "# a script\n# of comments\n", "a.example\tTRUE\tpath\tFALSE\t0\ta\tb\n",
        "1\t2\t3\t4\t5\t6\t7\n", "\u{FEFF}{}\n", "Set-Cookie: a=b\n",
    ])
    func otherFilesAreNoCookieJars(text: String) throws {
        try withFolder { folder in
            let jar = URL(filePath: folder + "/jar")
            try Data(text.utf8).write(to: jar)
            let refusal = try #require(try ParsedRun.refusal(["--cookie-jar", jar.path]))
            #expect(refusal.status == 2)
            #expect(
                refusal.text.contains("is not a cookie in Netscape's format"), "\(refusal)")
            #expect(try Data(contentsOf: jar) == Data(text.utf8))
        }
    }

    /// Named by flag and file.
    @Test(arguments: [
        (
            "--transform", "flip=h,overlay=FOLDER/none.png@north",
            "--transform: overlay=none.png: cannot read: No such file or directory"
        ),
        (
            "--variant", "card=overlay=FOLDER/cut.png@north",
            "--variant card: overlay=cut.png: "
        ),
        (
            "--transform", "overlay=FOLDER/text.txt@north", "--transform: overlay=text.txt: "
        ),
        (
            "--transform", "overlay=FOLDER/.@north", "--transform: overlay=.: cannot read: "
        ),
        (
            "--transform", "overlay=FOLDER/mark.png",
            "--transform: 'overlay=' takes FILE@GRAVITY like logo.png@south-east, not 'mark.png'"
        ),
    ])
    func unusableWatermarksAreWrongUsage(flag: String, value: String, message: String) throws {
        try withFolder { folder in
            let mark = Fixtures.png(width: 9, height: 5, seed: 2)
            for (name, bytes) in [
                ("mark.png", mark), ("cut.png", Array(mark.dropLast(30))),
                ("text.txt", Array("no image".utf8)),
            ] {
                try Data(bytes).write(to: URL(filePath: "\(folder)/\(name)"))
            }
            let refusal = try #require(
                try ParsedRun.refusal([flag, value.replacing("FOLDER", with: folder)]))
            #expect(refusal.status == 64)
            let text = refusal.text.replacing(folder + "/", with: "")
            #expect(text.contains(message), "\(text)")
        }
    }
}
