import HTTPSemantics
import PrefetchModel
import Testing

@Suite(.timeLimit(.minutes(15)))
struct VaryTests {
    static let request = [
        "Accept: image/*", "accept-encoding:  gzip,br ,  deflate", "User-Agent: a  b", "Foo: 1",
        "FOO: 2", "Empty: ", "Quoted: \"a ,  b\" , c",
    ]

    @Test(
        arguments: [
            ([], nil), ([""], nil), ([" , "], nil), (["Accept"], "accept: image/*"),
            (["ACCEPT", "accept, Accept"], "accept: image/*"),
            (["User-Agent, Accept"], "accept: image/*\nuser-agent: a b"),
            (["User-Agent", "Accept"], "accept: image/*\nuser-agent: a b"),
            // Insignificant white space; several field lines (RFC 9111 §4.1)
            (["Accept-Encoding"], "accept-encoding: gzip,br,deflate"), (["Foo"], "foo: 1,2"),
            (["Quoted"], "quoted: \"a ,  b\",c"),
            // Absent and empty
            (["Absent"], "absent:"), (["Empty"], "empty: "),
            (["*"], "*"), (["Accept, *"], "*"), (["", "*"], "*"), (["*", "*"], "*"),
            // No field name: the selecting fields are unknown
            (["a b"], "*"), (["accept;q=1"], "*"), (["foo:bar"], "*"), (["\"accept\""], "*"),
            (["é"], "*"), (["a\nb"], "*"),
        ] as [([String], String?)])
    func writesOneLineForEachField(values: [String], text: String?) {
        #expect(Vary.text(values, request: fields(Self.request)) == text)
    }

    @Test(arguments: [
        ["Accept"], ["Accept, User-Agent, Absent, Empty, Quoted, Foo", "Accept-Encoding"],
        ["Absent"], ["Empty"],
    ])
    func matchesTheSameRequest(values: [String]) throws {
        let text = try #require(Vary.text(values, request: fields(Self.request)))
        #expect(Vary.matches(text, request: fields(Self.request)))
        // The same fields in another order and notation.
        #expect(
            Vary.matches(
                text,
                request: fields(
                    Self.request.filter { $0.count > 6 } + [
                        "foo: 1 ,2"
                    ])) == true)
    }

    /// RFC 9111 §4.1.
    @Test(
        arguments: [
            (["Foo: 1"], ["foo: 1"], true), (["Foo: 1"], ["Foo: 2"], false),
            (["Foo: 1"], [], false), ([], ["Foo: 1"], false), ([], [], true),
            (["Foo: 1"], ["Foo: 1", "Bar: 2"], true), (["Foo: 1, 2"], ["Foo: 1", "Foo: 2"], true),
            (["Foo: 1"], ["Foo: 1", "Foo: 2"], false), (["Foo: 1,2"], ["Foo: 2,1"], false),
            (["Foo: a b"], ["Foo: a   b"], true), (["Foo: a b"], ["Foo: ab"], false),
            (["Foo: a"], ["Foo: A"], false), (["Foo: "], [], false), ([], ["Foo: "], false),
            (["Foo: \"a  b\""], ["Foo: \"a b\""], false),
            (["Foo: \"a\\\" b\""], ["Foo: \"a\\\"  b\""], false),
            (["Foo: \"a\"  b"], ["Foo: \"a\" b"], true),
            (["Foo: \u{E9}"], ["Foo: e\u{301}"], false),
        ] as [([String], [String], Bool)])
    func comparesTheVariedFields(first: [String], second: [String], isMatch: Bool) throws {
        let text = try #require(Vary.text(["Foo"], request: fields(first)))
        #expect(Vary.matches(text, request: fields(second)) == isMatch)
    }

    @Test(arguments: [
        "*", "", "Accept", "accept", "Absent:", "accept: image/*\nuser-agent", "\nabsent:", ":",
        "a b:", "absent:\n", "*\nabsent:",
    ])
    func rejectsOtherText(text: String) {
        #expect(!Vary.matches(text, request: fields(Self.request)))
    }

    @Test func keepsAValueWithinItsLine() {
        let request = [
            HeaderField(name: "Foo", value: "1\r\nbar: 2"),
            HeaderField(name: "Quoted", value: "\"1\nbar: 2\""),
        ]
        #expect(
            Vary.text(["foo, quoted"], request: request) == "foo: 1 bar: 2\nquoted: \"1 bar: 2\"")
    }
}
