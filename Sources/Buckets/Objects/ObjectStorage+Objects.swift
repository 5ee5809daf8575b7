import Glibc
import Hashing
package import PrefetchModel
package import Transfers

// Objects by their names below the storage's prefix.

extension ObjectStorage {
    /// Larger objects are sent in parts.
    package static let largestPut = ByteCount.mebibytes(64)
    private static let partSize = 16 << 20
    /// The most parts of an object, by the service's rules.
    private static let mostParts = 10_000

    /// Stores an object. The service compares the bytes with the digest, of large objects part by
    /// part, and an error of kind `damaged` means that they differ.
    package func put(
        _ name: String, _ content: ServiceExchange.SentContent, digest: ContentDigest,
        mediaType: String
    ) throws {
        var request = Request(.put, key: location.key(name))
        request.fields = [HeaderField(name: "Content-Type", value: mediaType)]
        request.digest = digest
        request.isOfNewObject = true
        request.exchange.content = content
        if case .file(let file, offset: 0, let count) = content,
            count > ObjectStorage.largestPut.bytes
        {
            return try putParts(
                request.key, mediaType: mediaType, of: parts(of: file, size: count, request.key))
        }
        // An error may follow status 200.
        guard try perform(request).fields.first("etag") != nil else {
            throw ObjectStorageError(
                description: "\(self.name(of: request.key)): the service gave the object no ETag")
        }
    }

    /// Stores an object from parts of at least 5 MiB, but for the last one; an empty part ends it.
    /// A failure leaves no object.
    package func put(
        _ name: String, mediaType: String, parts: () throws -> [UInt8]
    ) throws {
        func part(_ bytes: [UInt8]) -> Part {
            (.bytes(bytes), bytes.withUnsafeBytes { SHA256Hasher().digest(of: $0) })
        }
        let first = try parts()
        var next = try parts()
        guard !next.isEmpty else {
            return try put(
                name, .bytes(first), digest: part(first).digest, mediaType: mediaType)
        }
        var waiting: [UInt8]? = first
        try putParts(location.key(name), mediaType: mediaType) {
            if let bytes = waiting {
                waiting = nil
                return part(bytes)
            }
            guard !next.isEmpty else { return nil }
            let bytes = next
            next = try parts()
            return part(bytes)
        }
    }

    // MARK: Large objects

    private typealias Part = (content: ServiceExchange.SentContent, digest: ContentDigest)

    /// The parts of a file, one at each call.
    private func parts(of file: Int32, size: Int, _ key: String) -> () throws -> Part? {
        let partSize = max(ObjectStorage.partSize, (size - 1) / ObjectStorage.mostParts + 1)
        var offset = 0
        return { [self] in
            guard offset < size else { return nil }
            let count = min(partSize, size - offset)
            defer { offset += count }
            guard let digest = SHA256Hasher().digest(ofFile: file, from: offset, count: count)
            else {
                throw ObjectStorageError(
                    kind: .damaged, description: "\(name(of: key)): the file has become shorter")
            }
            return (.file(file, offset: offset, count: count), digest)
        }
    }

    /// Stores an object from parts; nil ends it.
    private func putParts(
        _ key: String, mediaType: String, of parts: () throws -> Part?
    ) throws {
        var begin = Request(.post, key: key)
        begin.query = [("uploads", "")]
        begin.isOfNewObject = true
        begin.fields = [HeaderField(name: "Content-Type", value: mediaType)]
        let answer = ObjectElements(try perform(begin).body)
        guard let upload = answer["UploadId"], !upload.isEmpty else {
            throw ObjectStorageError(
                description: "\(name(of: key)): the service began no upload in parts")
        }
        do {
            try sendParts(key, upload: upload, parts)
        } catch {
            // Parts of an unfinished upload cost money. A stopped storage sends nothing more.
            var abort = Request(.delete, key: key)
            abort.query = [("uploadId", upload)]
            _ = try? perform(abort)
            throw error
        }
    }

    private func sendParts(_ key: String, upload: String, _ parts: () throws -> Part?) throws {
        var document = "<CompleteMultipartUpload>"
        var (number, size) = (0, 0)
        while let (content, digest) = try parts() {
            number += 1
            size += content.count
            var part = Request(.put, key: key)
            part.query = [("partNumber", "\(number)"), ("uploadId", upload)]
            part.exchange.content = content
            part.digest = digest
            guard let tag = try perform(part).fields.first("etag") else {
                throw ObjectStorageError(
                    description: "\(name(of: key)): the service gave part \(number) no ETag")
            }
            document += "<Part><PartNumber>\(number)</PartNumber><ETag>\(tag)</ETag></Part>"
        }
        document += "</CompleteMultipartUpload>"
        var end = Request(.post, key: key)
        end.query = [("uploadId", upload)]
        end.fields = [HeaderField(name: "Content-Type", value: "application/xml")]
        end.exchange.isBrief = false
        end.exchange.content = .bytes(Array(document.utf8))
        end.digest = SHA256Hasher().digest(of: document)
        try complete(end, size: size)
    }

    private func complete(_ end: Request, size: Int) throws {
        var attempt = 1
        while true {
            do {
                // Status 200 may precede the error.
                let answer = ObjectElements(try perform(end).body)
                if answer["ETag"] != nil { return }
                let code = answer["Code"] ?? ""
                guard ObjectProblem.isTransient(code), attempt < 3 else {
                    throw ObjectStorageError(
                        description: "\(name(of: end.key)): the parts were not joined: "
                            + (code.isEmpty ? "no reason given" : code))
                }
                attempt += 1
            } catch let error as ObjectStorageError where error.kind == .missing {
                // The response to an earlier request, which has joined them, may be lost.
                guard try self.size(of: end.key) == size else { throw error }
                return
            }
        }
    }

    /// The size of an object; nil if it is missing.
    private func size(of key: String) throws -> Int? {
        var request = Request(key: "")
        request.query = [("list-type", "2"), ("max-keys", "1"), ("prefix", key)]
        let objects = ObjectElements(try perform(request).body).objects
        return objects.first { $0.key == key }?.size
    }

    // MARK: Reading

    package func bytes(of name: String, limit: ByteCount) throws -> [UInt8] {
        var request = Request(key: location.key(name))
        request.exchange.output = .memory(limit: limit.bytes)
        return try perform(request).body
    }

    /// Some bytes of an object, which must have them.
    package func bytes(of name: String, at range: Range<Int>) throws -> [UInt8] {
        try part(of: name, range, to: .memory(limit: range.count)).body
    }

    private func part(
        of name: String, _ range: Range<Int>, to output: ServiceExchange.BodyOutput,
        isBrief: Bool = true
    ) throws -> ServiceAnswer {
        var request = Request(key: location.key(name))
        let bytes = "bytes=\(range.lowerBound)-\(range.upperBound - 1)"
        request.fields = [HeaderField(name: "Range", value: bytes)]
        request.exchange.output = output
        request.exchange.isBrief = isBrief
        let refusal = ObjectStorageError(
            description: "\(self.name(of: request.key)): "
                + "the service did not send the requested range")
        do {
            let answer = try perform(request)
            guard answer.status == 206, answer.count == range.count else { throw refusal }
            return answer
        } catch let error as ObjectStorageError {
            // A damaged body is larger than the range.
            throw error.kind == .damaged ? refusal : error
        }
    }

    /// Writes an object into an open file, which is empty.
    ///
    /// A large object arrives in ranges: each has the time of a whole transfer, and a failure costs
    /// one of them.
    ///
    /// - Returns: the digest of the bytes.
    /// - Throws: an error of kind `damaged` if the object is larger than `size`.
    package func download(
        _ name: String, to file: Int32, size: ByteCount,
        rangeSize: ByteCount = ObjectStorage.largestPut
    ) throws -> ContentDigest {
        if size.bytes > rangeSize.bytes {
            for offset in stride(from: 0, to: size.bytes, by: rangeSize.bytes) {
                let range = offset..<min(size.bytes, offset + rangeSize.bytes)
                let output = ServiceExchange.BodyOutput.file(
                    file, offset: offset, limit: range.count)
                _ = try part(of: name, range, to: output, isBrief: false)
            }
        } else {
            var request = Request(key: location.key(name))
            request.exchange.output = .file(file, offset: 0, limit: size.bytes)
            request.exchange.isBrief = false
            let answer = try perform(request)
            guard [200, 206].contains(answer.status) else {
                throw ObjectStorageError(
                    description: "\(self.name(of: request.key)): the response has no body")
            }
        }
        guard let digest = SHA256Hasher().digest(ofFile: file) else {
            throw ObjectStorageError(description: "\(self.name(of: name)): the file cannot be read")
        }
        return digest
    }

    /// Removes an object, which may be missing.
    package func remove(_ name: String) throws {
        do {
            _ = try perform(Request(.delete, key: location.key(name)))
        } catch let error as ObjectStorageError where error.kind == .missing {
            // Another process has removed it.
        }
    }

    /// Returns the first of some names, in the order of their bytes, that an object has; nil
    /// without one.
    package func first(of names: [String]) throws -> String? {
        var rest = names[...]
        while let name = rest.first {
            // One character less precedes the name.
            let page = try list("", after: String(name.dropLast()), limit: 1_000)
            let present = Set(page.objects.map(\.name))
            guard let last = page.objects.last?.name else { return nil }
            while let next = rest.first, page.isLast || !last.comesBefore(next) {
                if present.contains(next) { return next }
                rest.removeFirst()
            }
            if page.isLast { return nil }
        }
        return nil
    }

    // MARK: Listing

    /// An object of a listing, by its name below the prefix.
    struct Object {
        let name: String
        let size: Int
    }

    package struct Page: Sendable {
        /// In the order of the bytes of their names.
        let objects: [Object]
        let isLast: Bool
    }

    /// The objects with names that begin with `start` and follow `last`, at most `limit` or 1,000.
    package func list(_ start: String, after last: String, limit: Int) throws -> Page {
        var request = Request(key: "")
        request.query = [
            ("list-type", "2"), ("max-keys", "\(limit)"),
            ("prefix", location.key(start)), ("start-after", location.key(last)),
        ]
        let answer = ObjectElements(try perform(request).body)
        let skipped = location.key("").utf8.count
        let objects = answer.objects.map { key, size in
            Object(name: String(decoding: key.utf8.dropFirst(skipped), as: UTF8.self), size: size)
        }
        // A caller that requests the names after the last one gets to the end.
        let isInOrder = zip([last] + objects.map(\.name), objects).allSatisfy { former, object in
            object.name.hasPrefix(start)
                && former.utf8.lexicographicallyPrecedes(object.name.utf8)
        }
        guard answer.isWellFormed, isInOrder, let isTruncated = answer["IsTruncated"] else {
            throw ObjectStorageError(
                description: "\(name(of: "")): the service's listing cannot be read",
                hint: "it must be one of ListObjectsV2, with start-after")
        }
        return Page(objects: objects, isLast: isTruncated != "true" || objects.isEmpty)
    }
}
