import PrefetchModel
import Testing

@testable import Exporting

/// Names that a web server would obey or run are not exported.
@Suite(.timeLimit(.minutes(15))) struct ServedNameTests {
    private static let scripts = [
        "php", "php3", "php5", "php8", "phps", "phpt", "pht", "phtm", "phtml", "phar", "cgi",
        "fcgi", "pl", "py", "rb", "asp", "aspx", "ashx", "asmx", "asa", "jsp", "jspx", "cfm",
        "shtml", "shtm",
    ]
    private static let unsafe =
        scripts.flatMap {
            ["a.\($0)", "a.jpg.\($0)", "a.\($0.uppercased())", "a.%\($0.hexadecimal)"]
        }
        + ["php", "php7", "phtml", "phar", "pht", "phps", "shtml"].map { "a.\($0).jpg" }
        + [
            ".htaccess", ".user.ini", ".git/config", ".git/a.jpg", "b/.svn/a.jpg", "%2Ehtaccess",
            ".a.jpg", "...", "web.config", "Web.Config", "a.php%20", "a.php.", "a.jpg?b=c.php",
        ]
    private static let safe = [
        "a.jpg", "php", "a.pl/b.jpg", "a.php/b.jpg", "a.pl.jpg", "a.php?b=1", "aphp.jpg", "a.phone",
        "a.b.c.webp", "index.html", "", "a..jpg", "cgi-bin/a.gif", "web.config.jpg", "A.PNG",
        "a.svg",
    ]

    private func problem(_ layout: ExportLayout, _ url: String, _ pattern: String = "{dir}/{name}")
        throws -> NamingProblem?
    {
        let rules = try ExportRules.fixture(layout) { rules in
            if layout == .pattern { rules.pattern = try NamePattern(pattern) }
        }
        do throws(NamingProblem) {
            _ = try ExportPlan(rules, at: Timestamp(seconds: 0)).path(of: .fixture(url))
            return nil
        } catch {
            return error
        }
    }

    @Test(arguments: [ExportLayout.mirror, .workbox, .pattern], unsafe)
    func refuses(layout: ExportLayout, path: String) throws {
        // A pattern of this test leaves the query out.
        guard layout != .pattern || !path.contains("?") else { return }
        let problem = try #require(try problem(layout, "http://e.example/\(path)"), "\(path)")
        #expect(problem.isUnsafe && problem.message.hasPrefix("a web server could obey or run "))
    }

    @Test(arguments: [ExportLayout.mirror, .workbox, .pattern], safe)
    func exports(layout: ExportLayout, path: String) throws {
        // The name of a pattern lacks the query.
        guard layout != .pattern || !path.contains("?") else { return }
        for host in ["e.example", "e.example.pl", "e.py"] {
            let pattern = "{host}/{dir}/{name}"
            #expect(try problem(layout, "http://\(host)/\(path)", pattern) == nil, "\(path)")
        }
    }

    /// The text of a pattern is the user's, values are not.
    @Test(arguments: [
        (".thumbs/{stem}.{ext}", "a.jpg", true), (".thumbs/{stem}.{ext}", ".a", false),
        (".thumbs/{dir}/{name}", ".git/a.jpg", false), (".{stem}", "a.jpg", true),
        ("{stem}.php", "a.jpg", true), ("{stem}.PHP", "a.php.jpg", true),
        ("{stem}.{ext}", "a.php.jpg", false), ("{query}.{ext}", "a", false),
        ("x{query}.{ext}", "a", true), ("{n}{name}", ".htaccess", true),
        ("x/{name}", "a.cgi", false),
        ("{name}.txt", "a.cgi", true), ("{name}.txt", "a.php", false), ("a.{key}", "php", false),
        ("{key}/{n}", ".git", false), ("{key}/{n}", "a.php", true), ("x.{stem}", "pl", false),
        ("web.config", "a", true), ("{key}", "web.config", false),
    ])
    func literalsAreTheUsersChoice(pattern: String, path: String, isExported: Bool) throws {
        let rules = try ExportRules.fixture(.pattern) { $0.pattern = try NamePattern(pattern) }
        let image = ExportedImage.fixture("http://e.example/\(path)", key: path)
        #expect((ExportPlan.path(of: image, rules) != nil) == isExported)
    }
}

extension String {
    /// The first byte in hexadecimal, and the rest: `a.%70hp` is `a.php`.
    fileprivate var hexadecimal: String {
        utf8.first.map { String($0, radix: 16) + dropFirst() } ?? self
    }
}
