import CJSON

/// The reason in an error's JSON, as in RFC 9457, OAuth (RFC 6749 §5.2), AWS, Google and GitHub.
enum JSONReason {
    /// The members with a sentence, the best one first.
    private static let sentences = [
        "message", "detail", "error_description", "errormessage", "description", "msg", "reason",
        "title",
    ]
    private static let codes = ["code", "__type", "errorcode", "error_code", "type", "status"]
    /// The members around these.
    private static let wrappers = ["error", "errors", "fault", "response"]
    private static let maximumDepth = 4

    private typealias Member = (name: String, kind: cjson_kind, text: String)

    /// The sentence and the code; empty for other JSON.
    static func parts(of json: [UInt8]) -> [String] {
        let isArray = json.first == UInt8(ascii: "[")
        return parts(of: json, isArray ? CJSON_ARRAY : CJSON_OBJECT, depth: 0)
    }

    private static func parts(of json: [UInt8], _ kind: cjson_kind, depth: Int) -> [String] {
        guard depth < maximumDepth else { return [] }
        let members = members(of: json, kind)
        if kind == CJSON_ARRAY {
            guard let first = members.first else { return [] }
            return first.kind == CJSON_STRING
                ? [first.text] : parts(of: Array(first.text.utf8), first.kind, depth: depth + 1)
        }
        func text(_ names: [String]) -> String? {
            names.lazy.compactMap { name in
                members.first { $0.name == name && $0.kind == CJSON_STRING && !$0.text.isEmpty }
            }.first?.text
        }
        let sentence = text(sentences)
        // OAuth's `error` is a code if a sentence explains it.
        let code = text(codes.filter { $0 != "type" && $0 != "status" } + ["error"] + ["status"])
        let own = [sentence, code].compactMap(\.self).filter { !$0.contains("://") }
        if !own.isEmpty { return own.count == 2 && own[0] == own[1] ? [own[0]] : own }
        for name in wrappers {
            guard let member = members.first(where: { $0.name == name }) else { continue }
            let inner = parts(of: Array(member.text.utf8), member.kind, depth: depth + 1)
            if !inner.isEmpty { return inner }
        }
        return []
    }

    private static func members(of json: [UInt8], _ kind: cjson_kind) -> [Member] {
        guard kind == CJSON_ARRAY || kind == CJSON_OBJECT else { return [] }
        let reader = cjson_make()
        defer { cjson_free(reader) }
        return json.withUnsafeBytes { bytes in
            guard let start = bytes.baseAddress else { return [] }
            let result = cjson_read(
                reader, start.assumingMemoryBound(to: CChar.self), bytes.count, kind)
            return UnsafeBufferPointer(start: result.values, count: result.count).map { value in
                func string(_ start: UnsafePointer<CChar>, _ count: Int) -> String {
                    String(
                        decoding: UnsafeRawBufferPointer(start: start, count: count), as: UTF8.self)
                }
                return (
                    string(value.name, value.name_count).lowercased(), value.kind,
                    string(value.text, value.text_count)
                )
            }
        }
    }
}
