import Glibc
import PrefetchModel

// Files and environment variables that flags name

extension RequestOptions {
    /// The value itself, or for `@FILE` the first line of that file.
    static func secret(_ value: String, _ flag: String) throws -> String {
        guard value.hasPrefix("@") else { return value }
        let text = try RequestOptions.contents(of: String(value.dropFirst()), flag)
        return RequestOptions.lines(text).first.map(String.init) ?? ""
    }

    /// The lines without their ends. Swift treats CR LF as one character.
    static func lines(_ text: String) -> [Substring] {
        text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
    }

    static func contents(
        of path: String, _ flag: String, limit: Int = 64 << 10
    ) throws -> String {
        let bytes: [UInt8]
        do throws(InputFileError) {
            let descriptor = try InputFile.openRegular(path)
            defer { close(descriptor) }
            bytes = try InputFile.read(descriptor, limit: limit + 1)
        } catch {
            throw UserError(
                "\(path): \(error.cause)", hint: "\(flag) names this file")
        }
        guard bytes.count <= limit else {
            throw UserError(
                "\(path): larger than \(ByteCount(limit)), the limit for \(flag)")
        }
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw UserError(
                "\(path): not UTF-8",
                hint: "\(flag) takes a file of UTF-8 text")
        }
        return text
    }

    static func unusable(_ path: String, _ flag: String, _ cause: Int32) -> UserError {
        UserError(
            "\(path): \(String(cString: strerror(cause)))", hint: "\(flag) names this file")
    }

    static func usage(_ message: String, hint: String? = nil) -> UserError {
        UserError(.usage, message, hint: hint)
    }
}
