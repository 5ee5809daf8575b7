import TestSupport

extension Origin {
    /// Serves `count` different pictures and returns their URLs in order.
    func serveImages(_ count: Int, gate: Gate? = nil) -> [String] {
        (0..<count).map { index in
            serve("/image/\(index).png", .image(Fixtures.png(seed: index), gate: gate))
            return url("/image/\(index).png")
        }
    }
}

extension Response {
    /// A picture with these fields, stale immediately unless they say more.
    static func picture(
        _ bytes: [UInt8], _ fields: (name: String, value: String)..., gate: Gate? = nil
    ) -> Response {
        let hasCaching = fields.contains { $0.name == "Cache-Control" }
        return Response(
            headers: fields + (hasCaching ? [] : [("Cache-Control", "max-age=0")]), body: bytes,
            type: "image/png", gate: gate)
    }

    static func notModified(
        _ fields: (name: String, value: String)..., gate: Gate? = nil
    ) -> Response {
        Response(304, headers: fields, framing: .bodiless, gate: gate)
    }
}
