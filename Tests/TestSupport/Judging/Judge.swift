/// Checks a cache with an independent program, in another language and with other decoders.
package enum Judge {
    package struct Verdict: Error, CustomStringConvertible {
        package let description: String
    }

    /// Checks a cache; paths of `sources` are relative to `folder`.
    ///
    /// - Returns: The number of variants.
    /// - Throws: ``Verdict`` with every problem found.
    package static func check(
        cache: String, sources: [String: String] = [:], variants: [String] = [], folder: String
    ) async throws -> Int {
        let arguments =
            [cache] + sources.flatMap { key, path in ["--source", key, path] }
            + (variants.isEmpty ? [] : ["--variants", variants.joined(separator: ",")])
        let answer = try await PythonServer.ask(["folder": folder, "judge": arguments])
        let last = answer.text.split(separator: "\n").last ?? ""
        guard answer.status == 0, last.hasPrefix("rows="),
            let rows = Int(last.dropFirst(5).prefix { $0.isNumber })
        else { throw Verdict(description: "the judge refuses the cache \(cache)\n\(answer.text)") }
        return rows
    }
}
