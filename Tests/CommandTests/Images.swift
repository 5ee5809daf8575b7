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
