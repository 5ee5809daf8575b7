import Foundation
import PrefetchModel
import Testing

@testable import CacheStorage

extension MigrationTests {
    /// As the versions before left it that kept placeholders among the attributes.
    static let version7 =
        version6 + """

            INSERT INTO grdb_migrations VALUES ('7');
            ALTER TABLE variant ADD COLUMN decoded INTEGER NOT NULL DEFAULT 1;

            INSERT INTO attribute VALUES (1, 'prefetch.color', CAST('#c86432' AS BLOB));
            INSERT INTO attribute VALUES
                (1, 'prefetch.thumbhash', CAST('2OcJBYaXhoetd4iXaIh4nzMDjwc3' AS BLOB));
            INSERT INTO attribute VALUES (1, 'a', x'01');
            INSERT INTO attribute VALUES (1, 'z', x'02');
            INSERT INTO attribute VALUES (7, 'prefetch.thumbhash', CAST('1QcSHQQ=' AS BLOB));
            """

    @Test func placeholdersOfVersion7AreShownAsBefore() throws {
        try make(7)
        _ = try #require(try OpenCache.open(path: path, waiting: .none))
        let directory = try CacheDirectory(path: path, access: .readOnly)
        let catalog = try CacheCatalog(directory: directory)
        func shown(_ key: String) throws -> [String] {
            let resource = try #require(try catalog.resource(of: key))
            return try catalog.attributes(of: resource).map {
                $0.name + "="
                    + ($0.value.count > 2 ? String(decoding: $0.value, as: UTF8.self) : "")
            }
        }
        let all = [
            "a=", "prefetch.color=#c86432", "prefetch.thumbhash=2OcJBYaXhoetd4iXaIh4nzMDjwc3", "z=",
        ]
        #expect(try shown("http://a/1") == all)
        // Version 2 gave this one `note`. A picture without a colour is transparent everywhere.
        #expect(try shown("http://a/7") == ["note=", "prefetch.thumbhash=1QcSHQQ="])
        var listed: [[String]] = []
        try catalog.forEachVariant(withAttributes: true) {
            listed.append($0.attributes.map(\.name))
        }
        let names = [
            ["a", "prefetch.color", "prefetch.thumbhash", "z"], ["note", "prefetch.thumbhash"],
        ]
        #expect(listed.count == 3 && Set(listed) == Set(names))
        #expect(try catalog.countWithoutPlaceholder() == 0)
        #expect(
            try queried("SELECT group_concat(name) FROM attribute ORDER BY 1", database)
                == "a,z,note")
    }

    /// What somebody else wrote there counts as none, and is made again.
    @Test(arguments: [
        ("prefetch.thumbhash", ""), ("prefetch.thumbhash", "2OcJ"),
        ("prefetch.thumbhash", "2OcJBYaXhoetd4iXaIh4nzMDjwc"), ("prefetch.thumbhash", "1Qc_HQQ="),
        ("prefetch.thumbhash", "2OcJBYaXhoetd4iXaIh4nzMDjwc3nzMDjwc3"),
        ("prefetch.color", "red"), ("prefetch.color", "#12345"), ("prefetch.color", "#1234gg"),
    ])
    func placeholdersThatAreNoneAreDropped(name: String, value: String) throws {
        try make(7)
        try runSQL(
            """
            UPDATE attribute SET value = CAST('\(value)' AS BLOB)
                WHERE resource_id = 1 AND name = '\(name)'
            """, database)
        _ = try #require(try OpenCache.open(path: path, waiting: .none))
        let kept = try queried(
            "SELECT group_concat(id) FROM resource WHERE thumbhash IS NOT NULL", database)
        #expect(kept == "7")
        #expect(
            try queried("SELECT count(*) FROM attribute WHERE name LIKE 'prefetch.%'", database)
                == "0")
    }
}
