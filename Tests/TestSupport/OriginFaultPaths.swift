/// Faults that are named by the URL itself, so that a manifest is a whole test plan.
///
/// `/f/FAULT/PARAMETER/FILE`, where `FILE` is one of the names given to ``Origin/serveFaults(of:)``:
///
/// | fault | parameter | answer |
/// |---|---|---|
/// | `plain` | any | the file |
/// | `cut-announced` | bytes | `Content-Length` of the whole, closed after so many bytes |
/// | `cut-chunked` | bytes | a chunk of the whole, closed after so many bytes |
/// | `cut-closed` | bytes | close-delimited, only so many bytes |
/// | `short` | bytes | only so many bytes, truly announced |
/// | `reset` | bytes | announced, reset after so many bytes |
/// | `stall` | bytes | announced, silent after so many bytes |
/// | `status` | code | the file under that status |
/// | `delay` | milliseconds | the file, that much later |
/// | `redirect` | count | so many redirects, then the file |
extension Origin {
    /// Serves fault paths over these files; what else is asked goes to `fallback`.
    package func serveFaults(
        of files: [String: [UInt8]], fallback: @escaping Answering = { _ in nil }
    ) {
        serve { request in
            let parts = request.path.split(separator: "/")
            guard parts.count == 4, parts[0] == "f", let number = Int(parts[2]),
                let file = files[String(parts[3])]
            else { return fallback(request) }
            return Origin.fault(String(parts[1]), number, of: file, named: String(parts[3]))
                ?? fallback(request)
        }
    }

    private static func fault(
        _ name: String, _ number: Int, of file: [UInt8], named fileName: String
    ) -> Response? {
        switch name {
        case "plain": return .image(file)
        case "cut-announced": return .image(file, ending: .closedAfter(bodyBytes: number))
        case "cut-chunked":
            var response = Response.image(
                file, framing: .chunked, ending: .closedAfter(bodyBytes: number))
            response.drip = (bytes: max(file.count, 1), interval: .zero)
            return response
        case "cut-closed": return .image(Array(file.prefix(number)), framing: .closeDelimited)
        case "short": return .image(Array(file.prefix(number)))
        case "reset": return .image(file, ending: .resetAfter(bodyBytes: number))
        case "stall": return .image(file, ending: .stalledAfter(bodyBytes: number))
        case "status": return Response(number, body: file)
        case "delay":
            var response = Response.image(file)
            response.delayBeforeHead = .milliseconds(number)
            return response
        case "redirect":
            return number > 0
                ? .redirect(to: "/f/redirect/\(number - 1)/\(fileName)") : .image(file)
        default: return nil
        }
    }
}
