import Glibc
package import PrefetchModel

/// An error in reading a manifest. Entries read before it stay valid.
package struct ManifestError: ReportableError, Equatable {
    /// The operation that failed.
    package enum Operation: String, Sendable {
        case configure
        case open
        case read
        /// Decompressing gzip.
        case inflate
        /// Detecting the text's encoding.
        case decode
        /// Distinguishing a list from other kinds of files.
        case recognise
        /// Parsing a URL; fails if libcurl can't be loaded.
        case parse
    }

    /// The path as the user gave it; `-` for standard input. For ``Operation/configure``, the base
    /// URL.
    package let path: String
    package let operation: Operation
    /// The `errno` of a failed system call, zlib's status for ``Operation/inflate``, else 0.
    package private(set) var code: Int32 = 0
    /// One line without the path, without final stop.
    package let message: String
    /// The last complete line before the error; nil if it doesn't help.
    package var line: Int?
    /// A remedy, if known.
    package private(set) var hint: String?
}

extension ManifestError {
    /// For a failed system call and its `errno`.
    init(path: String, operation: Operation, errorNumber: Int32) {
        // strerror shares a buffer between threads.
        var buffer = [CChar](repeating: 0, count: 256)
        let message: String
        if errorNumber == EISDIR {
            message = "is a directory"
        } else if strerror_r(errorNumber, &buffer, buffer.count) == 0 {
            message = String(
                decoding: buffer.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
        } else {
            message = "system error \(errorNumber)"
        }
        self.init(path: path, operation: operation, code: errorNumber, message: message)
    }
}

extension ManifestError: CustomStringConvertible {
    package var userError: UserError { UserError(.failed, description, hint: hint) }

    /// `list.txt: Permission denied`, `list.gz: the gzip data ends too early, after line 17`.
    package var description: String {
        let subject: String
        switch operation {
        case .configure: subject = Array(path.utf8).withUnsafeBufferPointer(LineExcerpt.text)
        case _ where path == "-": subject = "standard input"
        default:
            subject = String(
                String.UnicodeScalarView(
                    path.unicodeScalars.map {
                        $0.properties.generalCategory == .control ? "\u{FFFD}" : $0
                    }))
        }
        let place = line.map { ", after line \($0)" } ?? ""
        return "\(subject): \(message)\(place)"
    }
}
