import Foundation
import Threading

/// A bucket `b` in memory, served by an origin: the requests that `run --sink`, `pull` and
/// `get --sink` make, without signatures.
package final class Bucket: Sendable {
    private let objects: Monitor<[String: [UInt8]]>
    private let alters: @Sendable (Origin.Request, Response) -> Response

    /// Serves objects by key; `alters` replaces a response.
    package init(
        on origin: Origin, _ objects: [String: [UInt8]] = [:],
        alters: @escaping @Sendable (Origin.Request, Response) -> Response = { $1 }
    ) {
        self.objects = Monitor(objects)
        self.alters = alters
        origin.serve { [self] request in
            request.path.hasPrefix("/b") ? self.alters(request, answer(to: request)) : nil
        }
    }

    /// The variables for commands that use it.
    package static func environment(_ origin: Origin) -> [String: String] {
        ["AWS_ENDPOINT_URL_S3": origin.url(""), "AWS_REGION": "us-east-1"]
    }

    private func answer(to request: Origin.Request) -> Response {
        let parts = URLComponents(string: request.target)
        let query = Dictionary(
            (parts?.queryItems ?? []).map { ($0.name, $0.value ?? "") }, uniquingKeysWith: { $1 })
        let key = String((parts?.path ?? "").dropFirst("/b/".count))
        guard request.method == "GET" else { return Response(headers: [("ETag", "\"e\"")]) }
        return objects.withLock { objects in
            if query["list-type"] != nil {
                let names = objects.keys.sorted().filter {
                    $0.hasPrefix(query["prefix"] ?? "") && $0 > query["start-after"] ?? ""
                }
                let contents = names.map {
                    "<Contents><Key>\($0)</Key><Size>\(objects[$0]?.count ?? 0)</Size></Contents>"
                }
                return .text(
                    "<ListBucketResult><IsTruncated>false</IsTruncated>\(contents.joined())"
                        + "</ListBucketResult>", type: "application/xml")
            }
            guard let body = objects[key] else { return .notFound }
            guard
                let range = request.header("Range")?.dropFirst("bytes=".count).split(
                    separator: "-"),
                range.count == 2, let first = Int(range[0]), let last = Int(range[1])
            else { return Response(body: body, type: "application/octet-stream") }
            return Response(
                206,
                headers: [("Content-Range", "bytes \(first)-\(last)/\(body.count)")],
                body: Array(body[first...min(last, body.count - 1)]))
        }
    }
}
