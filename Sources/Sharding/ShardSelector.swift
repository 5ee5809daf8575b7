internal import CPSL
import Glibc
import Hashing
package import PrefetchModel

/// Finds the shards of URLs, by a plan or else by the hash of their domains. Not thread-safe.
///
/// All URLs of a registrable domain belong to one shard, so that the limits of a host hold for all
/// shards together. Only a plan splits a domain, which then has a part of its limits in each shard.
///
/// Remembers the places of hosts: a look-up of the suffix and a SHA-256 take a microsecond.
package final class ShardSelector {
    private let count: Int
    private let plan: ShardPlan?
    /// The positions of domains among ``ShardPlan/split``.
    private let positions: [String: Int]
    private let hasher = SHA256Hasher()
    private var memory = HostMemory()

    /// - Precondition: ``RegistrableDomain/load(for:)`` has succeeded.
    package init(count: Int, plan: ShardPlan? = nil) {
        precondition(plan.map { $0.shards == count } ?? true, "a plan of other shards")
        self.count = count
        self.plan = plan
        positions = Dictionary(
            (plan?.split ?? []).enumerated().map { ($1.domain, $0) },
            uniquingKeysWith: { first, _ in first })
    }

    /// The shards of a URL in normal form, by its domain: several if a plan has split it.
    package func shards(of url: UnsafeRawBufferPointer) -> [Int] {
        let place = place(of: url)
        guard place < 0, let plan else { return [Int(place)] }
        return plan.split[Int(~place)].shards
    }

    /// The shards of a URL in normal form among `count`. The plan has its file's name for messages.
    package static func shards(
        of url: String, count: Int, plan: (name: String, bytes: [UInt8])?
    ) throws(UserError) -> [Int] {
        try RegistrableDomain.load()
        let plan = try plan.map { file throws(UserError) in
            try ShardPlan(file: file.bytes, name: file.name)
        }
        var url = url
        return url.withUTF8 {
            ShardSelector(count: count, plan: plan).shards(of: UnsafeRawBufferPointer($0))
        }
    }

    /// The shard of an entry by its URL in normal form and its key. The key decides between the
    /// shards of a split domain, so that lines of one key meet.
    package func shard(
        of url: UnsafeRawBufferPointer, key: () -> UnsafeRawBufferPointer
    ) -> Int {
        let place = place(of: url)
        guard place < 0, let plan else { return Int(place) }
        let shards = plan.split[Int(~place)].shards
        return shards[ShardHash.place(of: key(), among: shards.count, hasher: hasher)]
    }

    private func place(of url: UnsafeRawBufferPointer) -> Int32 {
        let host = ShardSelector.host(in: url)
        if let known = memory[host] { return known }
        let place = place(ofDomain: ShardSelector.domain(of: host))
        memory.note(place, for: host)
        return place
    }

    /// A shard, or the complement of a position among ``ShardPlan/split``.
    private func place(ofDomain domain: UnsafeRawBufferPointer) -> Int32 {
        guard let plan else {
            return Int32(ShardHash.place(of: domain, among: count, hasher: hasher))
        }
        let name = String(decoding: domain, as: UTF8.self)
        if let position = positions[name] { return ~Int32(position) }
        if let shard = plan.packed[name] { return Int32(shard) }
        return Int32(
            plan.buckets[ShardHash.place(of: domain, among: plan.buckets.count, hasher: hasher)])
    }

    /// The registrable domain, or the whole host without one.
    static func domain(of host: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        let name =
            host.last == UInt8(ascii: ".")
            ? UnsafeRawBufferPointer(rebasing: host.dropLast()) : host
        return UnsafeRawBufferPointer(rebasing: name[RegistrableDomain.start(in: name)...])
    }

    /// The registrable domain of a URL in normal form, or its host without one.
    package static func domain(ofURL url: UnsafeRawBufferPointer) -> String {
        String(decoding: domain(of: host(in: url)), as: UTF8.self)
    }

    /// The host in a URL in normal form, without user information and port.
    static func host(in url: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        // `https://`; every authority is followed by a slash.
        var start = 7
        guard url.count > 8 else { return url }
        if url[4] == UInt8(ascii: "s") { start = 8 }
        var end = start
        var port: Int?
        while end < url.count, url[end] != UInt8(ascii: "/") {
            switch url[end] {
            case UInt8(ascii: "@"): (start, port) = (end + 1, nil)
            case UInt8(ascii: ":") where port == nil: port = end
            case UInt8(ascii: "]"): port = nil
            default: break
            }
            end += 1
        }
        // The colons of an IPv6 address are before its bracket.
        return UnsafeRawBufferPointer(rebasing: url[start..<(port ?? end)])
    }
}

/// The hash that distributes domains and URLs over shards: the first eight bytes of the SHA-256, in
/// big-endian order, modulo the number of places.
///
/// The same on every machine and in every version, and easy to repeat in SQL or Python.
enum ShardHash {
    static func place(
        of bytes: UnsafeRawBufferPointer, among count: Int, hasher: borrowing SHA256Hasher
    ) -> Int {
        Int(hasher.digest(of: bytes).leadingWords.0 % UInt64(count))
    }
}

/// Registrable domains by libpsl's own list: `example.co.uk` for `img.example.co.uk`.
package enum RegistrableDomain {
    /// Loads the library for a flag, which is the subject of the error.
    package static func load(for flag: String = "") throws(UserError) {
        guard let reason = cpsl_load() else { return }
        throw UserError(
            .failed, flag, "cannot load libpsl: \(String(cString: reason))",
            hint: "install libpsl (Debian's package is libpsl5)")
    }

    /// Returns the start of the registrable domain in a host in normal form: in lower case, as
    /// A-labels. 0 without one, which means the whole host: IP addresses, `localhost`,
    /// and public suffixes.
    ///
    /// - Precondition: ``load(for:)`` has succeeded.
    package static func start(in host: UnsafeRawBufferPointer) -> Int {
        // The parser of URLs writes every numeric host as a dotted quad or in brackets.
        guard let first = host.first, let last = host.last, first != UInt8(ascii: "["),
            !(48...57).contains(last) || host.contains(where: { $0 > 57 })
        else { return 0 }
        return withUnsafeTemporaryAllocation(of: CChar.self, capacity: host.count + 1) { text in
            guard let start = text.baseAddress, let bytes = host.baseAddress else { return 0 }
            memcpy(start, bytes, host.count)
            start[host.count] = 0
            guard let domain = cpsl_registrable_domain(start) else { return 0 }
            return UnsafePointer(domain) - UnsafePointer(start)
        }
    }
}

/// Numbers by host. A host may be forgotten for another one, so memory is limited.
///
/// A table of 65,536 places, 3.5 MB, allocated at first use; each host has one place.
struct HostMemory: ~Copyable {
    private static let bits = 16
    /// Longer hosts are not remembered.
    private static let longest = 50

    private struct KnownHost {
        var count: UInt8
        var number: Int32
    }

    private var slots: UnsafeMutablePointer<KnownHost>?
    private var names: UnsafeMutableRawPointer?

    deinit {
        slots?.deallocate()
        names?.deallocate()
    }

    subscript(host: UnsafeRawBufferPointer) -> Int32? {
        guard let slots, let names, let start = host.baseAddress, host.count <= HostMemory.longest
        else { return nil }
        let index = HostMemory.index(of: host)
        guard Int(slots[index].count) == host.count,
            memcmp(names + index * HostMemory.longest, start, host.count) == 0
        else { return nil }
        return slots[index].number
    }

    mutating func note(_ number: Int32, for host: UnsafeRawBufferPointer) {
        guard let start = host.baseAddress, host.count <= HostMemory.longest else { return }
        let size = 1 << HostMemory.bits
        if slots == nil {
            let new = UnsafeMutablePointer<KnownHost>.allocate(capacity: size)
            new.initialize(repeating: KnownHost(count: 0, number: 0), count: size)
            slots = new
            names = UnsafeMutableRawPointer.allocate(
                byteCount: size * HostMemory.longest, alignment: 8)
        }
        guard let slots, let names else { return }
        let index = HostMemory.index(of: host)
        slots[index] = KnownHost(count: UInt8(host.count), number: number)
        memcpy(names + index * HostMemory.longest, start, host.count)
    }

    /// FNV-1a with the upper bits mixed in.
    private static func index(of host: UnsafeRawBufferPointer) -> Int {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in host { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
        return Int(truncatingIfNeeded: (hash ^ hash >> 32) & (1 << UInt64(bits) - 1))
    }
}
