#include "cxml_encoding.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

/// Writes the letters and digits of a name, in lower case: `ISO_8859-1` is `iso88591`.
static void simplify(const char *name, char simple[CXML_ENCODING_NAME]) {
    size_t count = 0;
    for (; *name != 0 && count < CXML_ENCODING_NAME - 1; name += 1) {
        char letter = *name;
        if (letter >= 'A' && letter <= 'Z') letter = (char)(letter | 0x20);
        bool is_kept = (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9');
        if (is_kept) simple[count++] = letter;
    }
    simple[count] = 0;
}

/// The `*` of a name stands for digits or a letter, which take its place in the target.
static const char *const known[][2] = {
    {"utf8", "UTF-8"}, {"unicode11utf8", "UTF-8"}, {"utf8sig", "UTF-8"}, {"utf8mb4", "UTF-8"},
    {"utf16", "UTF-16"}, {"utf16le", "UTF-16"}, {"utf16be", "UTF-16"}, {"ucs2", "UTF-16"},
    {"iso10646ucs2", "UTF-16"}, {"unicode", "UTF-16"},
    {"iso88591", "WINDOWS-1252"}, {"iso885911987", "WINDOWS-1252"}, {"88591", "WINDOWS-1252"},
    {"latin1", "WINDOWS-1252"}, {"l1", "WINDOWS-1252"}, {"ibm819", "WINDOWS-1252"},
    {"cp819", "WINDOWS-1252"}, {"ascii", "WINDOWS-1252"}, {"usascii", "WINDOWS-1252"},
    {"ansix34*", "WINDOWS-1252"}, {"iso646us", "WINDOWS-1252"}, {"ansi", "WINDOWS-1252"},
    {"iso88599", "WINDOWS-1254"}, {"latin5", "WINDOWS-1254"}, {"iso885911", "CP874"},
    {"iso8859*", "ISO-8859-*"}, {"latin9", "ISO-8859-15"}, {"latin10", "ISO-8859-16"},
    {"latin*", "LATIN*"}, {"windows874", "CP874"}, {"tis620", "CP874"},
    {"windows125*", "WINDOWS-125*"}, {"win125*", "WINDOWS-125*"}, {"cp125*", "WINDOWS-125*"},
    {"xcp125*", "WINDOWS-125*"}, {"koi8", "KOI8-R"}, {"koi8r", "KOI8-R"}, {"koi8u", "KOI8-U"},
    {"cskoi8r", "KOI8-R"}, {"macintosh", "MACINTOSH"}, {"macroman", "MACINTOSH"},
    {"xmacroman", "MACINTOSH"}, {"maccyrillic", "MAC-CYRILLIC"},
    {"xmaccyrillic", "MAC-CYRILLIC"}, {"cp437", "IBM437"}, {"ibm437", "IBM437"},
    {"cp85*", "IBM85*"}, {"ibm85*", "IBM85*"}, {"cp86*", "IBM86*"}, {"ibm86*", "IBM86*"},
    {"gb2312", "GB18030"}, {"gb231280", "GB18030"}, {"csgb2312", "GB18030"}, {"gbk", "GB18030"},
    {"xgbk", "GB18030"}, {"cp936", "GB18030"}, {"gb18030", "GB18030"}, {"euccn", "GB18030"},
    {"big5", "BIG5-HKSCS"}, {"big5hkscs", "BIG5-HKSCS"}, {"xxbig5", "BIG5-HKSCS"},
    {"shiftjis", "CP932"}, {"sjis", "CP932"}, {"xsjis", "CP932"}, {"windows31j", "CP932"},
    {"cp932", "CP932"}, {"eucjp", "EUC-JP"}, {"xeucjp", "EUC-JP"}, {"euckr", "UHC"},
    {"ksc56011987", "UHC"}, {"ksc5601", "UHC"}, {"cp949", "UHC"}, {"windows949", "UHC"}};

bool cxml_find_encoding(const char *declared, char target[CXML_ENCODING_NAME]) {
    char simple[CXML_ENCODING_NAME];
    simplify(declared, simple);
    for (size_t index = 0; index < sizeof known / sizeof *known; index += 1) {
        const char *name = known[index][0];
        const char *star = strchr(name, '*');
        size_t prefix = star == NULL ? strlen(name) + 1 : (size_t)(star - name);
        if (strncmp(simple, name, prefix) != 0) continue;
        const char *rest = star == NULL ? "" : simple + prefix;
        if (star != NULL && (*rest == 0 || strlen(rest) > 5)) continue;
        const char *result = known[index][1];
        int length = (int)strcspn(result, "*");
        snprintf(
            target, CXML_ENCODING_NAME, "%.*s%s", length, result,
            result[length] == '*' ? rest : "");
        return true;
    }
    return false;
}
