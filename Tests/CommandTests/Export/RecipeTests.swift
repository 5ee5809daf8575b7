import Foundation
import TestSupport
import Testing

/// Runs the shell blocks of docs/recipes as they are printed, with an origin in the place of
/// `https://example.com`.
@Suite(.timeLimit(.minutes(15)))
struct RecipeTests {
    private static let folder = SourceTree.root.appending(path: "docs/recipes")

    /// The blocks of a language in a recipe, joined.
    private static func blocks(_ language: String, of recipe: String) throws -> String {
        let text = try String(contentsOf: folder.appending(path: recipe + ".md"), encoding: .utf8)
        let parts = text.components(separatedBy: "```" + language + "\n").dropFirst()
        return parts.compactMap { $0.components(separatedBy: "```").first }.joined()
    }

    private static var recipes: [String] {
        get throws {
            try FileManager.default.contentsOfDirectory(atPath: folder.path)
                .filter { $0.hasSuffix(".md") }.map { String($0.dropLast(3)) }.sorted()
        }
    }

    /// Runs a recipe's blocks over four images in `images.txt` and `urls.csv`.
    private func run(
        _ recipe: String, _ check: (Workspace, CommandResult, [String]) async throws -> Void
    ) async throws {
        try await withOrigin { origin in
            let lines = (0..<4).map { index in
                let path = "/a/photo\(index).\(index % 2 == 0 ? "jpg" : "png")"
                origin.serve(
                    path, .image(Fixtures.png(width: 64, height: 48, seed: index, isNoise: true)))
                return origin.url(path)
            }
            try await withWorkspace { workspace in
                try workspace.manifest(lines, name: "images.txt")
                try workspace.write(
                    Array(("URL,TEXT\n" + lines.map { "\($0),a text\n" }.joined()).utf8),
                    to: "urls.csv")
                for folder in ["site", "Seed", "bin"] {
                    try FileManager.default.createDirectory(
                        atPath: "\(workspace.folder)/\(folder)", withIntermediateDirectories: true)
                }
                try FileManager.default.createSymbolicLink(
                    atPath: workspace.folder + "/bin/prefetch",
                    withDestinationPath: Workspace.binary)
                var command = workspace.command(["-euc", try RecipeTests.blocks("sh", of: recipe)])
                command.executable = "/bin/sh"
                command.environment["PATH"] = "\(workspace.folder)/bin:/usr/bin:/bin"
                let result = try await command.run()
                #expect(result.status == 0, "\(result)")
                try await check(workspace, result, lines)
            }
        }
    }

    private func files(_ folder: String, in workspace: Workspace) throws -> [String] {
        try FileManager.default.subpathsOfDirectory(atPath: "\(workspace.folder)/\(folder)")
            .filter { !$0.hasPrefix(".") && $0.contains(".") }.sorted()
    }

    /// Runs a script with these files in `/etc/prefetch`, and `prefetch` on the `PATH`.
    private func run(
        _ script: String, withSystemFiles files: [String: String], in workspace: Workspace
    ) async throws -> CommandResult {
        for folder in ["etc", "bin"] {
            try FileManager.default.createDirectory(
                atPath: "\(workspace.folder)/\(folder)", withIntermediateDirectories: true)
        }
        for (name, text) in files { try workspace.write(Array(text.utf8), to: "etc/\(name)") }
        try? FileManager.default.createSymbolicLink(
            atPath: workspace.folder + "/bin/prefetch", withDestinationPath: Workspace.binary)
        var command = workspace.command([
            "-rm", "/bin/sh", "-c",
            """
            mount -t tmpfs tmpfs /etc && cp -r etc /etc/prefetch
            mount -t tmpfs tmpfs /var && mkdir /var/www
            """ + "\n" + script,
        ])
        command.executable = Namespace.program
        command.environment["PATH"] = "\(workspace.folder)/bin:/usr/bin:/bin"
        return try await command.run()
    }

    @Test(.enabled(if: Namespace.allowsMounts)) func cron() async throws {
        let configuration = try RecipeTests.blocks("toml", of: "cron")
        let jobs = try RecipeTests.blocks("crontab", of: "cron").split(separator: "\n")
        #expect(jobs.count == 3)
        try await withOrigin { origin in
            let urls = origin.serveImages(3)
            let lists = [
                "config.toml": configuration, "images.txt": urls[0] + "\n",
                "archive.txt": urls.joined(separator: "\n"),
            ]
            try await withWorkspace { workspace in
                for job in jobs {
                    // Five fields with the time precede the command.
                    let parts = job.split(separator: " ", maxSplits: 5)
                    let result = try await run(
                        String(parts[5]), withSystemFiles: lists, in: workspace)
                    // Cron mails all output.
                    #expect(
                        result.status == 0 && (result.output + result.error).isEmpty, "\(result)")
                }
                #expect(origin.requests.count == urls.count)
                let shown = try await run(
                    "set -e\n" + RecipeTests.blocks("sh", of: "cron"), withSystemFiles: lists,
                    in: workspace)
                #expect(shown.status == 0 && shown.output.contains("1 fresh"), "\(shown)")
            }
        }
    }

    @Test(.enabled(if: Namespace.allowsMounts)) func systemd() async throws {
        let dropIn = try RecipeTests.blocks("ini", of: "systemd")
        let start = try #require(
            dropIn.split(separator: "\n").last { $0.hasPrefix("ExecStart=/usr/bin/prefetch ") }
        ).dropFirst("ExecStart=/usr/bin/".count)
        let netrc = try RecipeTests.blocks("netrc", of: "systemd").replacing(
            "images.example.com", with: "127.0.0.1")
        try await withOrigin { origin in
            origin.serve("/a.png", .image(Fixtures.png(seed: 1)))
            try await withWorkspace { workspace in
                let result = try await run(
                    """
                    export CREDENTIALS_DIRECTORY="$PWD/credentials"
                    mkdir -m 700 credentials && cp /etc/prefetch/netrc credentials/
                    exec \(start)
                    """,
                    withSystemFiles: ["shop.txt": origin.url("/a.png") + "\n", "netrc": netrc],
                    in: workspace)
                #expect(result.status == 0, "\(result)")
                let wanted = "Basic " + Data("shop:SECRET".utf8).base64EncodedString()
                #expect(origin.requests.map { $0.header("authorization") } == [wanted])
                // The drop-in is one that systemd takes, if it is here.
                guard FileManager.default.fileExists(atPath: "/usr/bin/systemd-analyze") else {
                    return
                }
                var verify = workspace.command([
                    "-euc",
                    """
                    mkdir "prefetch@.service.d"
                    cp "$0/Packaging/deb/debian/prefetch@.service" .
                    printf '%s' "$1" | sed "s|/usr/bin/prefetch|$2|" >"prefetch@.service.d/shop.conf"
                    sed -i "s|/usr/bin/prefetch|$2|" prefetch@.service
                    systemd-analyze verify --man=no ./prefetch@.service
                    """, SourceTree.root.path, dropIn, Workspace.binary,
                ])
                verify.executable = "/bin/sh"
                let verified = try await verify.run()
                #expect(
                    verified.status == 0 && !verified.error.contains("prefetch@"), "\(verified)")
            }
        }
    }

    /// The recipes of exports.
    @Test func filesForOtherPrograms() async throws {
        #expect(
            try RecipeTests.recipes == [
                "apps", "cdn", "ci", "cron", "img2dataset", "static-site", "systemd", "web-server",
            ], "every recipe has a test")
        try await run("static-site") { workspace, _, lines in
            // No image is as wide as the variants, which do not enlarge.
            let images = try files("site/img", in: workspace)
            #expect(images.count == 4, "\(images)")
            let page = try String(
                contentsOfFile: workspace.folder + "/site/images.html", encoding: .utf8)
            #expect(page.components(separatedBy: "<img").count == 5)
            for image in images {
                #expect(page.contains(#"src="img/\#(image)" width="64""#), "\(page)")
            }
            for line in lines { #expect(page.contains(line)) }
        }
        try await run("apps") { workspace, _, _ in
            let hidden = try FileManager.default.contentsOfDirectory(
                atPath: workspace.folder + "/Seed/Kingfisher")
            #expect(hidden.count == 5)
            for (folder, count) in [("SDWebImage", 4), ("coil", 8), ("glide", 4)] {
                let found = try files("Seed/" + folder, in: workspace)
                #expect(found.count == count, "\(found)")
            }
        }
        try await run("img2dataset") { workspace, _, _ in
            let found = try files("dataset", in: workspace)
            #expect(found == ["00000.tar", "00000_stats.json"])
        }
    }

    @Test func cdn() async throws {
        try await run("cdn") { _, result, lines in
            for line in lines { #expect(result.output.contains("\(line) 200"), "\(result)") }
        }
    }

    /// The configuration of the recipe in a real nginx.
    @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/sbin/nginx")))
    func webServer() async throws {
        try await run("web-server") { workspace, _, lines in
            let path = "/img" + (URL(string: lines[0])?.path ?? "")
            let configuration = try RecipeTests.blocks("nginx", of: "web-server")
                .replacing("listen 8080", with: "listen unix:\(workspace.folder)/socket")
                .replacing("/srv/site", with: workspace.folder)
            try workspace.write(
                Array(
                    """
                    user root; pid \(workspace.folder)/pid; error_log \(workspace.folder)/error.log;
                    daemon off; events {}
                    http {
                    access_log off; client_body_temp_path \(workspace.folder)/t;
                    proxy_temp_path \(workspace.folder)/t; fastcgi_temp_path \(workspace.folder)/t;
                    uwsgi_temp_path \(workspace.folder)/t; scgi_temp_path \(workspace.folder)/t;
                    \(configuration)
                    }
                    """.utf8), to: "nginx.conf")
            var script = workspace.command([
                "-c",
                """
                /usr/sbin/nginx -c "$PWD/nginx.conf" -p "$PWD" & server=$!
                for i in $(seq 100); do [ -S socket ] && break; sleep 0.1; done
                for accept in image/avif,image/webp image/webp '*/*'; do
                    curl -s --unix-socket socket -H "Accept: $accept" -o /dev/null \
                        -w '%{http_code} %{content_type} %header{cache-control} %header{vary}\\n' \
                        "http://localhost\(path)"
                done
                kill $server; wait $server
                """,
            ])
            script.executable = "/bin/sh"
            let result = try await script.run()
            let tail = " public, max-age=31536000, immutable Accept\n"
            #expect(
                result.output == "200 image/avif\(tail)200 image/webp\(tail)200 image/png\(tail)",
                "\(result)")
        }
    }
}
