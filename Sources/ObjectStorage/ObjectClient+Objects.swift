import Glibc
import Hashing
package import PrefetchModel

// Objects by their names below the storage's prefix.

extension ObjectClient {
    /// Larger objects are sent in parts.
    package static let largestPut = ByteCount.mebibytes(64)
    /// The usual size of a part.
    private static let partSize = 16 << 20
    /// The most parts of an object, by the service's rules.
    private static let mostParts = 10_000

    /// The bytes of an object.
    package enum Content: Sendable {
        case bytes([UInt8])
        /// An open file, from its start on.
        case file(Int32, ByteCount)
    }

    /// Stores an object.
    ///
    /// The service compares the bytes with the digest, of large objects part by part.
    ///
    /// - Parameters:
    ///   - name: below the prefix.
    ///   - content: its bytes, which must not change meanwhile.
    ///   - digest: their digest.
    ///   - mediaType: the `Content-Type` for readers.
    /// - Throws: an error of kind `damaged` if the bytes differ from their digest.
    package func put(
        _ name: String, _ content: Content, digest: ContentDigest, mediaType: String
    ) throws(ObjectStorageError) {
        var request = Request(method: .put, key: storage.location.key(name))
        request.fields = ["Content-Type: \(mediaType)"]
        request.digest = digest
        switch content {
        case .bytes(let bytes): request.body = .bytes(bytes)
        case .file(let file, let size):
            guard size.bytes <= ObjectClient.largestPut.bytes else {
                return try putParts(request.key, file, size: size.bytes, mediaType: mediaType)
            }
            request.body = .file(file, offset: 0, count: size.bytes)
        }
        _ = try perform(request)
    }

    // MARK: Large objects

    private func putParts(
        _ key: String, _ file: Int32, size: Int, mediaType: String
    ) throws(ObjectStorageError) {
        var begin = Request(method: .post, key: key)
        begin.query = [("uploads", "")]
        begin.fields = ["Content-Type: \(mediaType)"]
        let answer = ObjectElements(try perform(begin).body)
        guard let upload = answer["UploadId"], !upload.isEmpty else {
            throw ObjectStorageError(
                .other, "\(storage.name(of: key)): the service began no upload in parts")
        }
        do throws(ObjectStorageError) {
            try sendParts(key, file, size: size, upload: upload)
        } catch {
            // Parts of an unfinished upload cost money. A stopped storage sends nothing more.
            var abort = Request(method: .delete, key: key)
            abort.query = [("uploadId", upload)]
            _ = try? perform(abort)
            throw error
        }
    }

    private func sendParts(
        _ key: String, _ file: Int32, size: Int, upload: String
    ) throws(ObjectStorageError) {
        let partSize = max(ObjectClient.partSize, (size - 1) / ObjectClient.mostParts + 1)
        var document = "<CompleteMultipartUpload>"
        for (index, offset) in stride(from: 0, to: size, by: partSize).enumerated() {
            let count = min(partSize, size - offset)
            var part = Request(method: .put, key: key)
            part.query = [("partNumber", "\(index + 1)"), ("uploadId", upload)]
            part.body = .file(file, offset: offset, count: count)
            part.digest = try digest(of: file, offset: offset, count: count, key)
            guard let tag = try perform(part).fields["etag"] else {
                throw ObjectStorageError(
                    .other, "\(storage.name(of: key)): the service gave part \(index + 1) no ETag")
            }
            document += "<Part><PartNumber>\(index + 1)</PartNumber><ETag>\(tag)</ETag></Part>"
        }
        document += "</CompleteMultipartUpload>"
        var end = Request(method: .post, key: key)
        end.query = [("uploadId", upload)]
        end.fields = ["Content-Type: application/xml"]
        end.body = .bytes(Array(document.utf8))
        end.digest = SHA256Hasher().digest(of: document)
        // Status 200 may come before the error.
        let answer = ObjectElements(try perform(end).body)
        guard answer["ETag"] != nil else {
            throw ObjectStorageError(
                .other,
                "\(storage.name(of: key)): the parts were not joined: "
                    + (answer["Code"] ?? "no reason given"))
        }
    }

    private func digest(
        of file: Int32, offset: Int, count: Int, _ key: String
    ) throws(ObjectStorageError) -> ContentDigest {
        let stream = SHA256Stream()
        var buffer = [UInt8](repeating: 0, count: 256 << 10)
        var done = 0
        while done < count {
            let number = buffer.withUnsafeMutableBytes { buffer in
                pread(file, buffer.baseAddress, min(buffer.count, count - done), offset + done)
            }
            guard number > 0 else {
                throw ObjectStorageError(
                    .damaged, "\(storage.name(of: key)): the file has become shorter")
            }
            buffer.withUnsafeBytes { bytes in
                stream.update(UnsafeRawBufferPointer(rebasing: bytes[..<number]))
            }
            done += number
        }
        return stream.finish()
    }

    // MARK: Reading

    /// An object's bytes.
    ///
    /// - Throws: an error of kind `missing` if there is no such object.
    package func bytes(
        of name: String, limit: ByteCount
    ) throws(ObjectStorageError) -> [UInt8] {
        var request = Request(key: storage.location.key(name))
        request.output = { .memory(limit: limit.bytes) }
        return try perform(request).body
    }

    /// Some bytes of an object; fewer at its end.
    ///
    /// - Throws: an error of kind `missing` if there is no such object.
    package func bytes(
        of name: String, at range: Range<Int>
    ) throws(ObjectStorageError) -> [UInt8] {
        var request = Request(key: storage.location.key(name))
        request.fields = ["Range: bytes=\(range.lowerBound)-\(range.upperBound - 1)"]
        request.output = { .memory(limit: range.count) }
        let response = try perform(request)
        guard response.status == 206 else {
            throw ObjectStorageError(
                .other, "\(storage.name(of: request.key)): the service sends no ranges")
        }
        return response.body
    }

    /// Writes an object into an open file, in place of its contents.
    ///
    /// - Returns: the digest and size of the bytes.
    /// - Throws: an error of kind `missing` if there is no such object.
    package func download(
        _ name: String, to file: Int32
    ) throws(ObjectStorageError) -> (digest: ContentDigest, size: ByteCount) {
        var request = Request(key: storage.location.key(name))
        request.output = {
            // A failed attempt may have written a part; an error shows when the next one writes.
            _ = ftruncate(file, 0)
            _ = lseek(file, 0, SEEK_SET)
            return .file(file)
        }
        guard let (digest, count) = try perform(request).file else {
            throw ObjectStorageError(
                .other, "\(storage.name(of: request.key)): the answer has no body")
        }
        return (digest, ByteCount(count))
    }

    /// Removes an object, which may be missing.
    package func remove(_ name: String) throws(ObjectStorageError) {
        do throws(ObjectStorageError) {
            _ = try perform(Request(method: .delete, key: storage.location.key(name)))
        } catch {
            guard case .missing = error.kind else { throw error }
        }
    }

    // MARK: Listing

    /// A page of a listing.
    package struct Page: Sendable {
        /// Names below the prefix, in the order of their bytes.
        package let names: [String]
        package let isLast: Bool
    }

    /// The names below the prefix that begin with `start` and follow `last`, at most `limit` of
    /// them; the service gives 1,000 at most.
    package func list(
        _ start: String, after last: String, limit: Int
    ) throws(ObjectStorageError) -> Page {
        var request = Request(key: "")
        request.query = [
            ("list-type", "2"), ("max-keys", "\(limit)"), ("prefix", storage.location.key(start)),
            ("start-after", storage.location.key(last)),
        ]
        let answer = ObjectElements(try perform(request).body)
        let skipped = storage.location.key("").utf8.count
        let names = answer.all.compactMap { element -> String? in
            guard element.parent == "Contents", element.name == "Key" else { return nil }
            return String(decoding: element.text.utf8.dropFirst(skipped), as: UTF8.self)
        }
        guard answer.isWellFormed, let isTruncated = answer["IsTruncated"] else {
            throw ObjectStorageError(
                .other, "\(storage.name(of: "")): the service's listing cannot be read")
        }
        return Page(names: names, isLast: isTruncated != "true" || names.isEmpty)
    }
}
