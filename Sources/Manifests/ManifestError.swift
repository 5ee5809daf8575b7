import Glibc
import PrefetchModel

/// A manifest cannot be read, or not read on; what was read of it before stays valid.
package struct ManifestError: EntryReadingError, Equatable {
    /// What was being done.
    package enum Operation: String, Sendable {
        case configure
        case open
        case read
        /// Undoing gzip.
        case inflate
        /// Telling the text's encoding.
        case decode
        /// Telling a list from other kinds of files.
        case recognise
        /// Parsing a URL; fails where the library for it cannot be loaded.
        case parse
    }

    /// As the user gave it; `-` for standard input. For ``Operation/configure`` the base URL.
    package let path: String
    package let operation: Operation
    /// The `errno` of the system call that failed, zlib's status for ``Operation/inflate``, 0 where
    /// neither applies.
    package let code: Int32
    /// One line without the path, without final stop.
    package let message: String
    /// The last line that was read whole, where that says where the trouble begins; nil elsewhere.
    package var line: Int?
    /// What can be done about it, where that is known here.
    package let hint: String?

    package init(
        path: String, operation: Operation, code: Int32 = 0, message: String, line: Int? = nil,
        hint: String? = nil
    ) {
        self.path = path
        self.operation = operation
        self.code = code
        self.message = message
        self.line = line
        self.hint = hint
    }

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
