import PrefetchModel
import Testing

@testable import Transfers

@Suite(.timeLimit(.minutes(15)))
struct AnnouncedLengthTests {
    @Test(arguments: [
        ([], AnnouncedLength.unknown), (["0"], .bytes(0)), (["0123"], .bytes(123)),
        (["5", "5"], .bytes(5)), (["5, 5"], .bytes(5)), (["5 ,\t05", "5"], .bytes(5)),
        (["9223372036854775807"], .bytes(.max)), (["9223372036854775808"], .unreadable),
        (["99999999999999999999999"], .unreadable), (["5", "6"], .contradictory),
        (["5, 6"], .contradictory), (["-5"], .unreadable), (["+5"], .unreadable),
        (["5 5"], .unreadable), (["0x5"], .unreadable), (["5.0"], .unreadable),
        (["five"], .unreadable), ([""], .unreadable), (["5,"], .unreadable),
        (["５"], .unreadable), (["5", "-5"], .unreadable),
    ])
    func readsOnlyDigits(values: [String], expected: AnnouncedLength) {
        #expect(AnnouncedLength(of: values) == expected)
    }

    @Test(
        arguments: [
            ([], false), ([("Content-Length", "5")], true),
            ([("Transfer-Encoding", "chunked")], true),
            ([("Transfer-Encoding", "gzip ,\tChunked ")], true),
            ([("Transfer-Encoding", "identity")], false), ([("Transfer-Encoding", "")], false),
            ([("Transfer-Encoding", "chunked, gzip")], false),
            ([("Transfer-Encoding", "xchunked")], false),
        ] as [([(String, String)], Bool)])
    func onlyALengthOrChunkedFramesABody(fields: [(String, String)], isFramed: Bool) {
        let fields = fields.map { HeaderField(name: $0.0, value: $0.1) }
        #expect(AnnouncedLength.isFramed(by: fields) == isFramed)
    }
}
