/// Faults selected by the URL: a manifest is a complete test plan.
///
/// `/f/FAULT/PARAMETER/FILE`: `FAULT` is the name of a row of ``FaultCase/all``, which defines the
/// response and the expected result. `PARAMETER` is a number that the row interprets. `FILE` is one
/// of the names given to ``serveFaults(of:fallback:)``.
extension Origin {
    /// Serves fault paths over these files; `fallback` serves all other requests.
    package func serveFaults(
        of files: [String: [UInt8]] = FaultCase.files,
        fallback: @escaping Answering = { _ in nil }
    ) {
        Encodings.prepare()
        serve { request in
            let parts = request.path.split(separator: "/")
            guard parts.count == 4, parts[0] == "f", let number = Int(parts[2]),
                let file = files[String(parts[3])], let answer = answers[String(parts[1])]
            else { return fallback(request) }
            return answer(
                FaultCase.Context(
                    request: request, parameter: number, file: file, fileName: String(parts[3])))
        }
    }
}

/// By name; rows with the same name differ only in their parameter.
private let answers = Dictionary(
    FaultCase.all.map { ($0.name, $0.answer) }, uniquingKeysWith: { first, _ in first })
