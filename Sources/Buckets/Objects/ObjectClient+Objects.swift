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
        // An error may follow status 200.
        guard try perform(request).fields["etag"] != nil else {
            throw ObjectStorageError(
                .other, "\(storage.name(of: request.key)): the service gave the object no ETag")
        }
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
        try complete(end, size: size)
    }

    /// Joins the parts of an object.
    private func complete(_ end: Request, size: Int) throws(ObjectStorageError) {
        var attempt = 1
        while true {
            do throws(ObjectStorageError) {
                // Status 200 may come before the error.
                let answer = ObjectElements(try perform(end).body)
                if answer["ETag"] != nil { return }
                let code = answer["Code"] ?? ""
                guard ObjectProblem.isTransient(code), attempt < 3 else {
                    throw ObjectStorageError(
                        .other,
                        "\(storage.name(of: end.key)): the parts were not joined: "
                            + (code.isEmpty ? "no reason given" : code))
                }
                attempt += 1
            } catch {
                // An earlier request may have joined them, whose answer was lost.
                guard case .missing = error.kind, try self.size(of: end.key) == size else {
                    throw error
                }
                return
            }
        }
    }

    /// The size of an object; nil if it is missing.
    private func size(of key: String) throws(ObjectStorageError) -> Int? {
        var request = Request(key: "")
        request.query = [("list-type", "2"), ("max-keys", "1"), ("prefix", key)]
        let objects = ObjectElements(try perform(request).body).objects
        return objects.first { $0.key == key }?.size
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

    /// Some bytes of an object, which must have them.
    ///
    /// - Throws: an error of kind `missing` if there is no such object.
    package func bytes(
        of name: String, at range: Range<Int>
    ) throws(ObjectStorageError) -> [UInt8] {
        var request = Request(key: storage.location.key(name))
        request.fields = ["Range: bytes=\(range.lowerBound)-\(range.upperBound - 1)"]
        request.output = { .memory(limit: range.count) }
        let response = try perform(request)
        guard response.status == 206, response.body.count == range.count else {
            throw ObjectStorageError(
                .other,
                "\(storage.name(of: request.key)): the service did not send the range asked for")
        }
        return response.body
    }

    /// Writes an object into an open file, in place of its contents.
    ///
    /// - Returns: the digest of the bytes.
    /// - Throws: an error of kind `missing` if there is no such object, `damaged` if it is larger
    ///   than the limit.
    package func download(
        _ name: String, to file: Int32, limit: ByteCount
    ) throws(ObjectStorageError) -> ContentDigest {
        var request = Request(key: storage.location.key(name))
        request.output = {
            // A failed attempt may have written a part; an error shows when the next one writes.
            _ = ftruncate(file, 0)
            _ = lseek(file, 0, SEEK_SET)
            return .file(file, limit: limit.bytes)
        }
        guard let (digest, _) = try perform(request).file else {
            throw ObjectStorageError(
                .other, "\(storage.name(of: request.key)): the answer has no body")
        }
        return digest
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

    /// An object of a listing.
    package struct Object: Hashable, Sendable {
        /// Below the prefix.
        package let name: String
        package let size: Int
    }

    /// A page of a listing.
    package struct Page: Sendable {
        /// In the order of the bytes of their names.
        package let objects: [Object]
        package let isLast: Bool
    }

    /// The objects whose names begin with `start` and follow `last`, at most `limit` of them; the
    /// service gives 1,000 at most.
    package func list(
        _ start: String, after last: String, limit: Int
    ) throws(ObjectStorageError) -> Page {
        var request = Request(key: "")
        request.query = [
            ("list-type", "2"), ("max-keys", "\(limit)"),
            ("prefix", storage.location.key(start)), ("start-after", storage.location.key(last)),
        ]
        let answer = ObjectElements(try perform(request).body)
        let skipped = storage.location.key("").utf8.count
        let objects = answer.objects.map { key, size in
            Object(
                name: String(decoding: key.utf8.dropFirst(skipped), as: UTF8.self), size: size)
        }
        // A caller that asks for the names after the last one gets to the end.
        let isInOrder = zip([last] + objects.map(\.name), objects).allSatisfy { former, object in
            object.name.hasPrefix(start)
                && former.utf8.lexicographicallyPrecedes(object.name.utf8)
        }
        guard answer.isWellFormed, isInOrder, let isTruncated = answer["IsTruncated"] else {
            throw ObjectStorageError(
                .other, "\(storage.name(of: "")): the service's listing cannot be read",
                hint: "it must be one of ListObjectsV2, with start-after")
        }
        return Page(objects: objects, isLast: isTruncated != "true" || objects.isEmpty)
    }
}
