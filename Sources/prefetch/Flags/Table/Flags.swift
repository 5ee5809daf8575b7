import ArgumentParser
import Threading

/// Flags that commands share as a group: a property ``RunFlag`` for each, in the order of the help,
/// or a group of them.
protocol FlagRows: Sendable {
    /// A value made of several flags.
    associatedtype Combined: Sendable = Void

    static var flags: FlagTable<Self> { get }

    /// Checks and combines values.
    ///
    /// - Throws: `ValidationError` for wrong values or values that exclude one another.
    static func combined(_ flags: Flags<Self>) throws -> Combined
}

extension FlagRows where Combined == Void {
    static func combined(_ flags: Flags<Self>) {}
}

extension FlagRows {
    static var allFlags: [any AnyRunFlag] { flags.all }
}

/// The flags of a group. Reflection finds them at the first use of ``all``; a single row, which is
/// all that short commands need, does without it.
@dynamicMemberLookup
struct FlagTable<Rows: Sendable>: Sendable {
    fileprivate let rows: Rows
    private let found = Monitor<[any AnyRunFlag]?>(nil)

    init(_ rows: Rows) { self.rows = rows }

    var all: [any AnyRunFlag] {
        found.withLock { found in
            if let found { return found }
            let all = Mirror(reflecting: rows).children.flatMap { child -> [any AnyRunFlag] in
                if let flag = child.value as? any AnyRunFlag { return [flag] }
                return (child.value as? any FlagRows).map { type(of: $0).allFlags } ?? []
            }
            found = all
            return all
        }
    }

    subscript<Value>(dynamicMember path: KeyPath<Rows, RunFlag<Value>>) -> RunFlag<Value> {
        rows[keyPath: path]
    }
}

/// The values of a group of flags, an option group for the parser: `flags.timeout` is the value of
/// the property `timeout` of `Rows`.
///
/// The parser finds its properties by reflection, which here returns the table's.
@dynamicMemberLookup
struct Flags<Rows: FlagRows>: ParsableArguments, CustomReflectable, Sendable {
    private(set) var values: [String: any Sendable] = [:]
    private var validated: Rows.Combined?

    init() {}

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: FlagKey.self)
        for flag in Rows.flags.all { values[flag.row.name] = try flag.decode(container) }
    }

    /// Takes the values that another group has, and defaults for the others.
    init(_ other: Flags<some FlagRows>) {
        for flag in Rows.flags.all {
            values[flag.row.name] = other.values[flag.row.name] ?? flag.absent
        }
    }

    var customMirror: Mirror {
        Mirror(
            self,
            children: Rows.flags.all.map { (label: $0.row.key.stringValue, value: $0.argument) })
    }

    mutating func validate() throws {
        try forEach { flag, value in try flag.check(value) }
        validated = try Rows.combined(self)
    }

    /// The value that the group makes of several flags.
    var combined: Rows.Combined {
        guard let validated else { preconditionFailure("the parser validates every group") }
        return validated
    }

    subscript<Value>(dynamicMember path: KeyPath<Rows, RunFlag<Value>>) -> Value {
        let flag = Rows.flags[dynamicMember: path]
        return flag.cast(values[flag.row.name])
    }

    /// The values of a part of the group.
    subscript<Part: FlagRows>(dynamicMember path: KeyPath<Rows, Part>) -> Flags<Part> {
        Flags<Part>(self)
    }

    /// Applies the flags in the order of their declaration.
    func apply(to settings: inout RunSettings) throws {
        try forEach { flag, value in try flag.apply(value, to: &settings) }
    }

    private func forEach(_ body: (any AnyRunFlag, any Sendable) throws -> Void) rethrows {
        for flag in Rows.flags.all {
            guard let value = values[flag.row.name] else { continue }
            try body(flag, value)
        }
    }
}
