import Glibc
import Reporting

/// Prints ``RunFlags`` as JSON Lines, beside the parser's `--experimental-dump-help`.
///
/// Tests compare both. Not documented for users.
enum FlagList {
    static let flag = "--experimental-dump-flags"

    static func write() throws {
        var lines = LineWriter.standardOutput()
        for section in RunFlags.sections {
            for row in RunFlags.rows(section.heading) {
                try lines.write(JSONObject(row, under: section.heading))
            }
        }
        try lines.finish()
    }
}

extension JSONObject {
    fileprivate init(_ row: FlagRow, under heading: FlagHeading) {
        self.init()
        add("name", row.name)
        add("short", row.short.map { String($0) })
        add("group", heading.rawValue)
        add("value", row.value)
        add("default", row.defaultText)
        add("help", row.help)
        add("configurable", row.isConfigurable)
        add("in_projects", "\(row.projectRule)")
        add("in_hosts", row.isPerHost)
        add("repeatable", row.isRepeatable)
        add("choices", row.choices)
        add("environment", row.environment.joined(separator: " "))
    }
}
