internal import CCurl
import PrefetchModel

extension TransferConfiguration {
    /// The header lines of a request, beside those that libcurl writes by itself, in libcurl's
    /// notation: `Name:` with nothing behind it leaves the field out.
    func fieldLines(of request: TransferRequest) -> [String] {
        var fields = [HeaderField(name: "Accept", value: accept)]
        if !request.isForeign {
            fields = fields.replaced(by: requests.fields.replaced(by: request.userFields))
        }
        return (fields + request.fields).map {
            $0.value.isEmpty ? "\($0.name):" : "\($0.name): \($0.value)"
        }
    }

    /// What must not be in a message about a request.
    func secrets(of request: TransferRequest) -> [String] {
        let proxies = [requests.proxies.http, requests.proxies.https].compactMap(\.self)
        return (requests.fields + request.userFields).map(\.value)
            + [requests.credentials?.password].compactMap(\.self)
            + ([request.url] + proxies).flatMap(RequestURL.passwords)
    }
}

/// A list of strings as libcurl takes it, which keeps a reference to it.
final class FieldList {
    /// nil for an empty list.
    let pointer: UnsafeMutablePointer<curl_slist>?

    init(_ lines: [String]) {
        pointer = lines.reduce(nil) { list, line in
            guard let longer = curl_slist_append(list, line) else {
                // Never a request that lacks a condition, nor one with half of its fields.
                preconditionFailure("no memory for a request's fields")
            }
            return longer
        }
    }

    deinit {
        curl_slist_free_all(pointer)
    }
}
