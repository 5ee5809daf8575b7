/// Faults of statuses, redirects, Retry-After, validators, and bodies that are not cacheable
/// images.
extension FaultCase {
    static let statuses: [FaultCase] =
        [400, 402, 404, 405, 406, 409, 410, 414, 416, 418, 451].map {
            status($0, .permanent("http-status"))
        }
        + [408, 421, 425, 500, 501, 502, 504, 507, 599].map {
            status($0, .transient("http-status"))
        } + [401, 403, 407].map { status($0, .ours("http-status")) }
        + [201, 203, 226].map { status($0, .arrives) }
        + [202, 206].map { status($0, .refused("http-status")) } + [
            FaultCase("bare-204", .refused("http-status", "not-an-image"), "204") { _ in
                Response(204, framing: .bodiless)
            },
            FaultCase("bare-205", .refused("http-status", "not-an-image"), "205") { _ in
                Response(205)
            },
            FaultCase("bare-304", .refused("http-status"), "304 that nobody asked for") { _ in
                .notModified
            },
            FaultCase(
                "upgrade", .refused("http-status", "interrupted", "stalled"), wait: .stall,
                "101 that nobody asked for"
            ) { _ in
                Response(
                    101, headers: [("Upgrade", "websocket"), ("Connection", "Upgrade")],
                    framing: .bodiless)
            },
            FaultCase("not-found-cut", .permanent("http-status"), "404 whose body breaks off") {
                Response(404, body: $0.file, framing: .lyingLength(99_999))
            },
            FaultCase(
                "not-found-silent", .permanent("http-status"), wait: .stall,
                "404 whose body never comes"
            ) {
                Response(404, body: $0.file, ending: .stalledAfter(bodyBytes: 5))
            },
            FaultCase("not-found-endless", .permanent("http-status"), "404 whose body never ends") {
                Response(404, body: $0.file, framing: .chunked, ending: .endless)
            },
            FaultCase("not-found-trailers", .permanent("http-status"), "404 with endless trailers")
            { Response(404, body: $0.file, framing: .chunked, ending: .endlessTrailers) },
            FaultCase(
                "range-unasked", .refused("http-status"), "206 and a `Content-Range` of the whole"
            ) {
                var response = Response(206, body: $0.file, type: "image/png")
                let last = $0.file.count - 1
                response.headers.append(("Content-Range", "bytes 0-\(last)/\($0.file.count)"))
                return response
            },
        ]

    private static func status(_ code: Int, _ expectation: Expectation) -> FaultCase {
        FaultCase("status", at: code, expectation, "the file under status \(code)") {
            Response($0.parameter, body: $0.file)
        }
    }

    private static func redirect(
        _ name: String, _ expectation: Expectation, status: Int = 302, _ meaning: String,
        _ location: @escaping @Sendable (Context) -> String
    ) -> FaultCase {
        FaultCase(name, expectation, meaning) { .redirect(status, to: location($0)) }
    }

    private static let chain: Answer = { context in
        context.parameter > 0
            ? .redirect(to: "/f/redirect/\(context.parameter - 1)/\(context.fileName)")
            : .image(context.file)
    }

    private static let crossing: Answer = { context in
        guard context.parameter > 0 else { return .image(context.file) }
        let path = "/f/redirect-hosts/\(context.parameter - 1)/\(context.fileName)"
        let host = context.parameter.isMultiple(of: 2) ? "one.localhost" : "two.localhost"
        return .redirect(to: context.url(path, host: host))
    }

    private static let brokenLocation = Expectation.permanent("redirect")

    static let redirects: [FaultCase] = [
        FaultCase("redirect", at: 10, .arrives, "so many redirects, then the file", chain),
        FaultCase(
            "redirect", at: 11, .permanent("redirect"), "so many redirects, then the file", chain),
        FaultCase("redirect-hosts", at: 9, .arrives, "so many between two hosts", crossing),
        FaultCase(
            "redirect-hosts", at: 12, .permanent("redirect"), "so many between two hosts", crossing),
        redirect("redirect-self", .permanent("redirect"), "to itself") { $0.request.target },
        redirect("redirect-loop", .permanent("redirect"), "to and fro between two hosts") {
            let host = $0.request.host == "one.localhost" ? "two.localhost" : "one.localhost"
            return $0.url($0.request.target, host: host)
        },
        redirect("redirect-ftp", brokenLocation, "to ftp") {
            $0.url("/x", host: "a.localhost").replacing("http", with: "ftp")
        },
        redirect("redirect-file", brokenLocation, "to a file") { _ in "file:///etc/hostname" },
        redirect("redirect-data", brokenLocation, "to data") { _ in "data:image/png;base64,AAAA" },
        redirect("redirect-gopher", brokenLocation, "to gopher") {
            $0.url("/x", host: "a.localhost").replacing("http", with: "gopher")
        },
        redirect("redirect-script", brokenLocation, "to a script") { _ in "javascript:alert(1)" },
        redirect("redirect-broken", brokenLocation, "to what is no URL") { _ in "http://[::1" },
        redirect("redirect-port", brokenLocation, "to port 99999") { _ in
            "http://a.localhost:99999/"
        },
        redirect("redirect-long", .refused("redirect", "interrupted"), "to 300 kB") { _ in
            "/" + String(repeating: "x", count: 300_000)
        },
        redirect("redirect-nowhere", .permanent("http-status"), "to 404") { _ in "/nowhere" },
        redirect("redirect-closed", .transient("connect"), "to a closed port") { _ in
            "http://127.0.0.1:1/x.png"
        },
        redirect("redirect-no-name", .transient("dns"), "to a name that does not exist") { _ in
            "http://no-such-host.invalid/x.png"
        },
        redirect("redirect-absolute", .arrives, "with a path") { $0.plainPath },
        redirect("redirect-relative", .arrives, "relative to its own path") {
            "../../plain/0/\($0.fileName)"
        },
        redirect("redirect-no-scheme", .arrives, "without a scheme") {
            String($0.url($0.plainPath, host: "one.localhost").dropFirst(5))
        },
        redirect("redirect-fragment", .arrives, "with a fragment") { $0.plainPath + "#part" },
        redirect("redirect-spaces", .arrives, "with a space in its query") {
            $0.plainPath + "?a b"
        },
        redirect("redirect-case", .arrives, "to HTTP in capitals") {
            $0.url($0.plainPath, host: "one.localhost").replacing("http:", with: "HTTP:")
        },
        redirect("redirect-encoded-lines", .arrives, "with line ends, encoded, in its query") {
            $0.plainPath + "?a=%0d%0aX-Injected:%201"
        },
        redirect("redirect-301", .arrives, status: 301, "301") { $0.plainPath },
        redirect("redirect-303", .arrives, status: 303, "303") { $0.plainPath },
        redirect("redirect-307", .arrives, status: 307, "307") { $0.plainPath },
        redirect("redirect-308", .arrives, status: 308, "308") { $0.plainPath },
        FaultCase(
            "redirect-no-location", .refused("redirect", "http-status"), "302 without `Location`"
        ) { _ in Response(302) },
        FaultCase("redirect-cut", .arrives, "302 whose body breaks off") {
            var response = Response.redirect(to: $0.plainPath)
            response.body = $0.file
            response.framing = .lyingLength(99_999)
            return response
        },
        FaultCase("redirect-endless", .arrives, "302 whose body never ends") {
            var response = Response.redirect(to: $0.plainPath)
            response.body = $0.file
            response.framing = .chunked
            response.ending = .endless
            return response
        },
    ]

    private static func cool(
        _ name: String, _ status: Int, _ meaning: String,
        _ value: @escaping @Sendable () -> String
    ) -> FaultCase {
        FaultCase(
            "\(name)-\(status)", .transient("http-status"), coolsHost: true,
            "\(status) with `Retry-After` \(meaning)"
        ) { _ in
            .unavailable(status, retryAfter: value())
        }
    }

    static let cooling: [FaultCase] =
        [429, 503].flatMap { status in
            [
                cool("retry-number", status, "of 60 seconds") { "60" },
                cool("retry-zero", status, "of no time") { "0" },
                cool("retry-date", status, "of a date a minute ahead") {
                    HTTPDateText.now(plus: 60)
                },
                cool("retry-past", status, "of a date that is past") {
                    HTTPDateText.now(plus: -3600)
                },
                cool("retry-negative", status, "of -5") { "-5" },
                cool("retry-years", status, "of ten years") { "\(10 * 365 * 86400)" },
                cool("retry-date-years", status, "of a date ten years ahead") {
                    HTTPDateText.now(plus: 10 * 365 * 86400)
                },
                cool("retry-overflow", status, "of 2^70 seconds") { "1180591620717411303424" },
                cool("retry-text", status, "of words") { "after lunch" },
            ]
        } + [
            FaultCase(
                "retry-none", .transient("http-status"), coolsHost: true,
                "429 without `Retry-After`"
            ) { _ in .unavailable(429) }
        ]

    private static func field(
        _ name: String, _ field: String, _ meaning: String,
        _ value: @escaping @Sendable () -> String
    ) -> FaultCase {
        FaultCase(name, .arrives, meaning) {
            var response = Response.image($0.file)
            response.headers.append((field, value()))
            return response
        }
    }

    /// Faults that do not prevent a valid picture from being stored.
    static let validators: [FaultCase] = [
        field("tag-weak", "ETag", "a weak validator") { "W/\"x\"" },
        field("tag-long", "ETag", "a validator of 64 kB") {
            "\"\(String(repeating: "x", count: 65_536))\""
        },
        field("tag-control", "ETag", "a validator with control bytes") { "\"a\u{1}\u{7F}b\"" },
        field("tag-bare", "ETag", "a validator without quotes") { "abc" },
        field("modified-ahead", "Last-Modified", "modified a day from now") {
            HTTPDateText.now(plus: 86_400)
        },
        field("modified-text", "Last-Modified", "modified at a time of words") { "yesterday" },
        field("date-ahead", "Date", "a date a year ahead") {
            HTTPDateText.now(plus: 365 * 86_400)
        },
        field("date-past", "Date", "a date a year ago") { HTTPDateText.now(plus: -365 * 86_400) },
        field("age-overflow", "Age", "an age of 2^70 seconds") { "1180591620717411303424" },
        FaultCase("no-store", .permanent("uncacheable"), "`Cache-Control: no-store`") {
            Response(headers: [("Cache-Control", "no-store")], body: $0.file, type: "image/png")
        },
    ]

    private static func typed(
        _ name: String, file: String = "x.png", _ expectation: Expectation, _ type: String,
        _ meaning: String, _ body: @escaping @Sendable ([UInt8]) -> [UInt8] = { $0 }
    ) -> FaultCase {
        FaultCase(name, file: file, expectation, meaning) {
            Response(body: body($0.file), type: type)
        }
    }

    static let contents: [FaultCase] = [
        typed("page", file: "page.html", .permanent("not-an-image"), "text/html", "a page"),
        typed(
            "page-as-png", file: "page.html", .permanent("not-an-image"), "image/png",
            "a page called a picture"),
        typed("json", .permanent("not-an-image"), "application/json", "JSON") { _ in
            Array("{}".utf8)
        },
        typed("empty", .transient("interrupted"), "image/png", "no byte, truly announced") { _ in
            []
        },
        FaultCase("empty-chunked", .transient("interrupted"), "no byte, chunked") { _ in
            .image([], framing: .chunked)
        },
        FaultCase("empty-closed", .transient("interrupted"), "no byte, closed") {
            _ in .image([], framing: .closeDelimited)
        },
        typed("png-as-page", .arrives, "text/html", "a picture called a page"),
        typed("png-as-jpeg", .arrives, "image/jpeg", "a picture called another"),
        typed("tiff", file: "x.tiff", .permanent("unsupported-image"), "image/tiff", "a TIFF"),
        typed(
            "damaged", .permanent("corrupt-image"), "image/png", "a bit flipped",
            { Fixtures.damaged($0) }),
        typed("no-end-chunk", .arrives, "image/png", "without its end chunk") {
            $0.dropLast(12)
        },
        typed(
            "no-end-marker", file: "x.jpg", .permanent("corrupt-image"), "image/jpeg",
            "without its end marker"
        ) { $0.dropLast(2) },
        typed(
            "half-jpeg", file: "x.jpg", .permanent("corrupt-image"), "image/jpeg",
            "three quarters, truly announced"
        ) { $0.dropLast($0.count / 4) },
        typed("pixel-bomb", .permanent("too-many-pixels"), "image/png", "60 000 pixels square") {
            _ in Fixtures.pngDeclaring(width: 60_000, height: 60_000)
        },
        typed("trailing-bytes", .either("corrupt-image"), "image/png", "bytes after its end") {
            $0 + Array("<script>".utf8)
        },
    ]
}
