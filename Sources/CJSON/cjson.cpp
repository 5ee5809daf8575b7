#include "cjson.h"

#include <nlohmann/json.hpp>

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

extern "C" cjson_reader *cjson_make(void) { return new cjson_reader(); }

extern "C" void cjson_free(cjson_reader *reader) { delete reader; }

extern "C" cjson_result cjson_read(
    cjson_reader *reader, const char *bytes, size_t count, cjson_kind kind) {
    reader->begin(kind);
    bool is_read = json::sax_parse(bytes, bytes + count, reader);
    reader->finish();
    cjson_result result = {};
    result.status = reader->is_other  ? CJSON_OTHER
                    : reader->is_deep ? CJSON_DEEP
                    : is_read         ? CJSON_OK
                                      : CJSON_INVALID;
    result.position = reader->error_position;
    result.values = reader->values.data();
    result.count = reader->values.size();
    return result;
}
