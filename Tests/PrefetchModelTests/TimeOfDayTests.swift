import Foundation
import Testing

@testable import PrefetchModel

/// The next moment at which a local clock shows a time, on days when clocks are changed.
@Suite(.timeLimit(.minutes(15)))
struct TimeOfDayTests {
    private let formatter = ISO8601DateFormatter()

    private func seconds(_ text: String) throws -> Int64 {
        Int64(try #require(formatter.date(from: text)).timeIntervalSince1970)
    }

    private static func offset(_ zone: TimeZone, _ moment: Int64) -> Int64 {
        Int64(zone.secondsFromGMT(for: Date(timeIntervalSince1970: Double(moment))))
    }

    /// Python's `zoneinfo` gives the same moments.
    @Test(
        arguments: [
            ("America/New_York", "2027-11-07T05:29:58Z", "01:30", "2027-11-07T05:30:00Z"),
            ("America/New_York", "2027-11-07T05:30:00Z", "01:30", "2027-11-07T06:30:00Z"),
            ("America/New_York", "2027-11-07T06:29:58Z", "01:30", "2027-11-07T06:30:00Z"),
            ("America/New_York", "2027-11-07T06:30:00Z", "01:30", "2027-11-08T06:30:00Z"),
            ("America/New_York", "2027-03-14T06:00:00Z", "02:30", "2027-03-14T07:00:00Z"),
            ("America/New_York", "2027-03-14T07:00:00Z", "02:30", "2027-03-15T06:30:00Z"),
            ("America/New_York", "2027-03-14T06:59:59Z", "03:00", "2027-03-14T07:00:00Z"),
            ("Europe/Berlin", "2027-10-31T00:29:58Z", "02:30", "2027-10-31T00:30:00Z"),
            ("Europe/Berlin", "2027-10-31T01:29:58Z", "02:30", "2027-10-31T01:30:00Z"),
            ("Europe/Berlin", "2027-10-31T00:59:59Z", "03:00", "2027-10-31T02:00:00Z"),
            ("Europe/Berlin", "2027-10-31T00:59:59Z", "02:00", "2027-10-31T01:00:00Z"),
            ("Europe/Berlin", "2027-03-27T22:00:00Z", "02:15", "2027-03-28T01:00:00Z"),
            ("Europe/Berlin", "2027-03-28T00:59:59Z", "02:15", "2027-03-28T01:00:00Z"),
            ("Europe/Berlin", "2027-03-27T05:00:00Z", "06:00", "2027-03-28T04:00:00Z"),
            ("Europe/Berlin", "2027-10-30T04:00:00Z", "06:00", "2027-10-31T05:00:00Z"),
            ("America/Santiago", "2027-09-05T03:00:00Z", "00:00", "2027-09-05T04:00:00Z"),
            ("America/Santiago", "2027-09-05T03:59:59Z", "00:30", "2027-09-05T04:00:00Z"),
            ("America/Santiago", "2027-04-04T02:30:00Z", "23:30", "2027-04-04T03:30:00Z"),
            ("America/Santiago", "2027-04-04T03:00:00Z", "23:30", "2027-04-04T03:30:00Z"),
            ("America/Santiago", "2027-04-04T02:59:59Z", "00:00", "2027-04-04T04:00:00Z"),
            ("Australia/Lord_Howe", "2027-10-02T15:29:59Z", "02:15", "2027-10-02T15:30:00Z"),
            ("Australia/Lord_Howe", "2027-10-02T12:00:00Z", "02:30", "2027-10-02T15:30:00Z"),
            ("Australia/Lord_Howe", "2027-04-03T14:44:00Z", "01:45", "2027-04-03T14:45:00Z"),
            ("Australia/Lord_Howe", "2027-04-03T14:45:00Z", "01:45", "2027-04-03T15:15:00Z"),
            ("Australia/Lord_Howe", "2027-04-03T14:59:00Z", "02:00", "2027-04-03T15:30:00Z"),
            ("Pacific/Apia", "2011-12-30T08:00:00Z", "12:00", "2011-12-30T10:00:00Z"),
            ("Asia/Kolkata", "2027-01-01T00:00:00Z", "05:30", "2027-01-02T00:00:00Z"),
            ("Asia/Kolkata", "2027-01-01T00:00:20Z", "05:30", "2027-01-02T00:00:00Z"),
        ])
    func nextMoment(zone: String, now: String, time: String, next: String) throws {
        let zone = try #require(TimeZone(identifier: zone))
        let parts = time.split(separator: ":").compactMap { Int($0) }
        let time = try #require(TimeOfDay(hour: parts[0], minute: parts[1]))
        let found = time.next(after: try seconds(now)) { Self.offset(zone, $0) }
        #expect(found == (try seconds(next)))
    }

    /// Compares with a search through all minutes of the two days around each change.
    @Test(arguments: [
        ("Europe/Berlin", "2027-03-28T01:00:00Z"), ("Europe/Berlin", "2027-10-31T01:00:00Z"),
        ("America/New_York", "2027-03-14T07:00:00Z"),
        ("America/New_York", "2027-11-07T06:00:00Z"),
        ("America/Santiago", "2027-04-04T03:00:00Z"),
        ("America/Santiago", "2027-09-05T04:00:00Z"),
        ("Australia/Lord_Howe", "2027-04-03T15:00:00Z"),
        ("Australia/Lord_Howe", "2027-10-02T15:30:00Z"),
        ("Pacific/Apia", "2011-12-30T10:00:00Z"),
    ])
    func allTimesAroundAChange(zone: String, change: String) throws {
        let zone = try #require(TimeZone(identifier: zone))
        let change = try seconds(change)
        #expect(Self.offset(zone, change - 1) != Self.offset(zone, change))
        // The clock's minutes since 1970; all changes are at whole minutes.
        let first = change / 60 - 30 * 60
        let clock = (first..<first + 90 * 60).map { $0 + Self.offset(zone, $0 * 60) / 60 }
        var moments: [Int64: [Int64]] = [:]
        for index in clock.indices.dropFirst() {
            let shown = clock[index]
            for minute in min(shown, clock[index - 1] + 1)...shown {
                moments[minute % 1440, default: []].append((first + Int64(index)) * 60)
            }
        }
        for now in stride(from: change - 26 * 3600 - 1, to: change + 26 * 3600, by: 7001) {
            for minute in stride(from: 0 as Int64, to: 1440, by: 15) {
                let expected = moments[minute]?.first { $0 > now }
                let time = try #require(
                    TimeOfDay(hour: Int(minute) / 60, minute: Int(minute) % 60))
                let found = time.next(after: now) { moment in
                    let index = Int(moment.quotientAndRemainder(dividingBy: 60).quotient - first)
                    return (clock[index] - first - Int64(index)) * 60
                }
                #expect(found == expected, "\(now), \(minute)")
            }
        }
    }

    @Test(arguments: [(24, 0), (0, 60), (-1, 0), (0, -1)])
    func refusesOtherTimes(hour: Int, minute: Int) {
        #expect(TimeOfDay(hour: hour, minute: minute) == nil)
    }
}
