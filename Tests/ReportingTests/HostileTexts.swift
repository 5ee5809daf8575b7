/// Texts that break XML, Markdown, workflow commands or terminals if they are not escaped.
enum HostileTexts {
    static let all = [
        "]]>", "<a href=\"x\">&amp;&#0;</a>", "'\"`|\\*_~[x](http://y)$z$", "::error::x",
        "  ::stop-commands::token", "a\n::set-output name=x::y", "##[error]x", "100%0A%25",
        "##[\u{301}error]x", "::\u{301}error::x", "%\u{301}\r\n\u{301}::debug::", ":\u{301}: ::x",
        "\r\n::debug::", "<!--", "<![CDATA[x]]>", "\u{FFFE}\u{FFFF}\u{1FFFE}",
        "\u{202E}txt\u{2028}\u{200B}\u{FEFF}", "é 图 👩‍👩‍👧",
        String((0..<0x20).map { Character(Unicode.Scalar($0)) }) + "\u{7F}\u{85}\u{9F}",
    ]
}
