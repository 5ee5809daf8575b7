/// An origin's response to a range request.
package enum RangeAnswer: String, CaseIterable, Sendable {
    /// As RFC 9110 §14.2 and §13.1.5 require: 206 if the validator matches, else 200.
    case right
    /// 200 with the whole file, ignoring the range.
    case ignored
    /// 206 with a part that begins one byte later and says so.
    case otherStart
    /// 206 with the right part, but a total that is one byte larger.
    case otherTotal
    /// 206 with another unit in the field.
    case otherUnit
    /// 206 without `Content-Range`.
    case missing
    /// 206 as `multipart/byteranges` with one part, which was not requested.
    case multipart
    /// 206 with an unparsable field.
    case garbage
    /// 206 with a validator other than the one in the request.
    case otherValidator
    /// 416 with the file's length.
    case notSatisfiable
    /// 404, as some origins send for every range.
    case notFound
    /// 500, as some origins send for every range.
    case failed
}

extension Response {
    /// The response to `request`, which may be for a range of `file` with the validator `tag`.
    package static func range(
        of file: [UInt8], tag: String, to request: Origin.Request, _ answer: RangeAnswer = .right
    ) -> Response {
        var whole = Response.image(file)
        whole.headers += [("ETag", tag), ("Accept-Ranges", "bytes")]
        guard let start = request.header("range").flatMap(Response.rangeStart) else { return whole }
        let isCurrent = request.header("if-range").map { $0 == tag } ?? true
        let total = file.count
        switch answer {
        case .ignored: return whole
        case .notFound: return .notFound
        case .failed: return Response(500)
        case .right where !isCurrent: return whole
        case .right where start >= total, .notSatisfiable:
            return Response(416, headers: [("Content-Range", "bytes */\(total)")])
        default: break
        }
        let first = answer == .otherStart ? start + 1 : start
        var response = Response(
            206, headers: [("ETag", answer == .otherValidator ? "\"another\"" : tag)],
            body: Array(file.dropFirst(first)), type: "image/png")
        let place = "\(first)-\(max(first, total - 1))"
        switch answer {
        case .missing: break
        case .otherTotal:
            response.headers.append(("Content-Range", "bytes \(place)/\(total + 1)"))
        case .otherUnit: response.headers.append(("Content-Range", "lines \(place)/\(total)"))
        case .garbage: response.headers.append(("Content-Range", "bytes from the middle"))
        case .multipart:
            let boundary = "part"
            response.headers = [
                ("ETag", tag), ("Content-Type", "multipart/byteranges; boundary=\(boundary)"),
            ]
            let head = "--\(boundary)\r\nContent-Range: bytes \(place)/\(total)\r\n\r\n"
            response.body =
                Array(head.utf8) + response.body + Array("\r\n--\(boundary)--\r\n".utf8)
        default: response.headers.append(("Content-Range", "bytes \(place)/\(total)"))
        }
        return response
    }

    /// The N of `bytes=N-`; nil for other forms, which an origin may ignore (RFC 9110 §14.2).
    private static func rangeStart(_ field: String) -> Int? {
        guard field.hasPrefix("bytes="), field.hasSuffix("-") else { return nil }
        return Int(field.dropFirst(6).dropLast())
    }
}
