#include "cjson.h"

#include <nlohmann/json.hpp>

#include <cmath>
#include <cstring>

using json = nlohmann::json;

/// Receives the tokens, and puts the values of the outermost object or array together again.
struct cjson_reader final : public nlohmann::json_sax<json> {
    std::vector<cjson_value> values;
    bool is_other = false, is_deep = false;
    std::size_t error_position = 0;

    void begin(cjson_kind kind) {
        outermost = kind;
        values.clear();
        places.clear();
        text.clear();
        name_start = depth = error_position = 0;
        needs_comma = is_other = is_deep = false;
    }

    /// Sets the texts of the values.
    void finish() {
        for (std::size_t index = 0; index < values.size(); index += 1) {
            const char *start = text.data();
            const place &place = places[index];
            cjson_value &value = values[index];
            value.name = start + place.name;
            value.name_count = place.value - place.name;
            value.text = start + place.value;
            value.text_count = place.end - place.value;
        }
    }

    bool null() override { return scalar(CJSON_NULL, "null"); }
    bool boolean(bool value) override { return scalar(CJSON_BOOLEAN, value ? "true" : "false"); }
    bool number_integer(number_integer_t value) override {
        return scalar(CJSON_NUMBER, std::to_string(value));
    }
    bool number_unsigned(number_unsigned_t value) override {
        return scalar(CJSON_NUMBER, std::to_string(value));
    }
    // Also integers of more than 64 bits.
    bool number_float(number_float_t, const string_t &digits) override {
        return scalar(CJSON_NUMBER, digits);
    }
    bool string(string_t &value) override {
        before();
        std::size_t start = text.size();
        if (depth > 1) {
            append_quoted(value);
        } else {
            text += value;
        }
        return after(CJSON_STRING, start);
    }
    bool binary(binary_t &) override { return false; }

    bool start_object(std::size_t) override { return start('{', CJSON_OBJECT); }
    bool start_array(std::size_t) override { return start('[', CJSON_ARRAY); }
    bool end_object() override { return end('}', CJSON_OBJECT); }
    bool end_array() override { return end(']', CJSON_ARRAY); }

    bool key(string_t &name) override {
        if (depth == 1) {
            name_start = text.size();
            text += name;
            return true;
        }
        before();
        append_quoted(name);
        text += ':';
        needs_comma = false;
        return true;
    }

    bool parse_error(
        std::size_t position, const std::string &, const nlohmann::detail::exception &) override {
        error_position = position;
        return false;
    }

private:
    /// The ends of a name and of its value in the text, which moves while it grows.
    struct place {
        std::size_t name, value, end;
    };

    cjson_kind outermost = CJSON_OBJECT;
    std::vector<place> places;
    /// The names and values at depth 1, one after another.
    std::string text;
    std::size_t name_start = 0, value_start = 0;
    std::size_t depth = 0;
    bool needs_comma = false;

    void before() {
        if (depth > 1 && needs_comma) text += ',';
        needs_comma = true;
    }

    void append_quoted(const string_t &value) {
        bool is_plain = true;
        for (unsigned char byte : value) {
            is_plain = is_plain && byte >= 0x20 && byte < 0x7F && byte != '"' && byte != '\\';
        }
        if (!is_plain) {
            // In ASCII, since some characters control terminals.
            text += json(value).dump(-1, ' ', true);
            return;
        }
        text += '"';
        text += value;
        text += '"';
    }

    bool scalar(cjson_kind kind, const string_t &digits) {
        before();
        std::size_t start = text.size();
        text += digits;
        return after(kind, start);
    }

    /// Ends a value, which begins at `start` if it is at depth 1.
    bool after(cjson_kind kind, std::size_t start) {
        if (depth == 0) is_other = true;
        if (depth != 1) return true;
        if (outermost == CJSON_ARRAY) name_start = start;
        cjson_value value = {};
        value.kind = kind;
        values.push_back(value);
        places.push_back({name_start, start, text.size()});
        return true;
    }

    bool start(char bracket, cjson_kind kind) {
        if (depth == 0) {
            is_other = kind != outermost;
        } else {
            if (depth == 1) value_start = text.size();
            before();
            text += bracket;
        }
        depth += 1;
        needs_comma = false;
        is_deep = depth > CJSON_MAXIMUM_DEPTH;
        // The rest is not worth reading.
        return !is_other && !is_deep;
    }

    bool end(char bracket, cjson_kind kind) {
        depth -= 1;
        needs_comma = true;
        if (depth == 0) return true;
        text += bracket;
        return after(kind, value_start);
    }
};

namespace {

/// Makes JSON of what Python writes, see `cjson_read`.
class repair {
public:
    std::string text;
    bool is_changed = false, has_lone_surrogate = false;

    repair(const char *bytes, size_t count) : at(bytes), end(bytes + count) {
        text.reserve(count);
        bool is_in_string = false;
        while (at < end) {
            if (!is_in_string) {
                if (take_number()) continue;
                is_in_string = *at == '"';
                copy(1);
            } else if (*at == '\\') {
                take_escape();
            } else if ((unsigned char)*at >= 0x80) {
                take_character();
            } else {
                is_in_string = *at != '"';
                copy(1);
            }
        }
    }

private:
    const char *at, *end;

    void copy(size_t count) {
        count = std::min(count, size_t(end - at));
        text.append(at, count);
        at += count;
    }

    void replace(size_t count, const char *by) {
        text += by;
        at += count;
        is_changed = true;
    }

    bool starts_with(const char *word) const {
        size_t length = strlen(word);
        return size_t(end - at) >= length && memcmp(at, word, length) == 0;
    }

    /// Takes a number, or one of the words for a number that JSON does not have.
    bool take_number() {
        for (const char *word : {"NaN", "Infinity", "-Infinity"}) {
            if (!starts_with(word)) continue;
            replace(strlen(word), "null");
            return true;
        }
        const char *digit = at;
        while (digit < end && strchr("+-.0123456789eE", *digit) != nullptr && *digit != 0) digit += 1;
        // Longer words such as `true` have an `e`, too.
        if (digit == at || strchr("eE+.", *at) != nullptr) return false;
        std::string number(at, digit);
        if (std::isinf(strtod(number.c_str(), nullptr))) {
            replace(number.size(), "null");
        } else {
            copy(number.size());
        }
        return true;
    }

    /// The code unit of `\uXXXX` at a place; -1 for anything else.
    int unit(const char *place) const {
        if (end - place < 6 || place[0] != '\\' || place[1] != 'u') return -1;
        int value = 0;
        for (const char *digit = place + 2; digit < place + 6; digit += 1) {
            if (!isxdigit((unsigned char)*digit)) return -1;
            int lower = *digit | 0x20;
            value = value * 16 + (isdigit((unsigned char)*digit) ? *digit - '0' : lower - 'a' + 10);
        }
        return value;
    }

    void take_escape() {
        int first = unit(at);
        if (first < 0xD800 || first > 0xDFFF) return copy(2);
        int second = first < 0xDC00 ? unit(at + 6) : -1;
        if (second >= 0xDC00 && second <= 0xDFFF) return copy(12);
        has_lone_surrogate = true;
        replace(6, "\\ufffd");
    }

    void take_character() {
        unsigned char lead = (unsigned char)*at;
        size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
        bool is_whole = lead >= 0xC2 && lead < 0xF5 && size_t(end - at) >= length;
        for (size_t index = 1; is_whole && index < length; index += 1) {
            is_whole = ((unsigned char)at[index] & 0xC0) == 0x80;
        }
        if (is_whole) {
            // No longer forms, no surrogates, nothing above U+10FFFF.
            unsigned char second = (unsigned char)at[1];
            is_whole = !(lead == 0xE0 && second < 0xA0) && !(lead == 0xED && second >= 0xA0)
                && !(lead == 0xF0 && second < 0x90) && !(lead == 0xF4 && second >= 0x90);
        }
        if (is_whole) return copy(length);
        replace(1, "\xEF\xBF\xBD");
    }
};

}  // namespace

extern "C" cjson_reader *cjson_make(void) { return new cjson_reader(); }

extern "C" void cjson_free(cjson_reader *reader) { delete reader; }

extern "C" cjson_result cjson_read(
    cjson_reader *reader, const char *bytes, size_t count, cjson_kind kind) {
    cjson_result result = {};
    reader->begin(kind);
    bool is_read = json::sax_parse(bytes, bytes + count, reader);
    if (!is_read && !reader->is_other && !reader->is_deep) {
        size_t position = reader->error_position;
        repair repaired(bytes, count);
        if (repaired.is_changed) {
            reader->begin(kind);
            is_read = json::sax_parse(repaired.text, reader);
            result.has_lone_surrogate = is_read && repaired.has_lone_surrogate;
        }
        // The position in the text as it is.
        if (!is_read) reader->error_position = position;
    }
    reader->finish();
    result.status = reader->is_other  ? CJSON_OTHER
                    : reader->is_deep ? CJSON_DEEP
                    : is_read         ? CJSON_OK
                                      : CJSON_INVALID;
    result.position = reader->error_position;
    result.values = reader->values.data();
    result.count = reader->values.size();
    return result;
}
