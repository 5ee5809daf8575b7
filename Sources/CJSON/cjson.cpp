#include "cjson.h"

#include <nlohmann/json.hpp>

namespace {

using json = nlohmann::json;

/// Receives the tokens, and puts the values of the outermost object or array together again.
class reader final : public nlohmann::json_sax<json> {
public:
    reader(cjson_kind kind, cjson_visitor visitor, void *context)
        : outermost(kind), visitor(visitor), context(context) {}

    bool is_other = false;
    std::size_t error_position = 0;

    bool null() override { return scalar(CJSON_NULL, "null"); }
    bool boolean(bool value) override { return scalar(CJSON_BOOLEAN, value ? "true" : "false"); }
    bool number_integer(number_integer_t value) override {
        return scalar(CJSON_NUMBER, std::to_string(value));
    }
    bool number_unsigned(number_unsigned_t value) override {
        return scalar(CJSON_NUMBER, std::to_string(value));
    }
    // Also integers of more than 64 bits.
    bool number_float(number_float_t, const string_t &text) override {
        return scalar(CJSON_NUMBER, text);
    }
    bool string(string_t &value) override {
        before();
        if (depth > 1) append_quoted(value);
        return after(CJSON_STRING, 0, &value);
    }
    bool binary(binary_t &) override { return false; }

    bool start_object(std::size_t) override { return start('{', CJSON_OBJECT); }
    bool start_array(std::size_t) override { return start('[', CJSON_ARRAY); }
    bool end_object() override { return end('}', CJSON_OBJECT); }
    bool end_array() override { return end(']', CJSON_ARRAY); }

    bool key(string_t &value) override {
        if (depth == 1) {
            name = value;
            return true;
        }
        before();
        append_quoted(value);
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
    const cjson_kind outermost;
    const cjson_visitor visitor;
    void *const context;
    std::size_t depth = 0;
    std::string name;
    /// The JSON of the value at depth 1.
    std::string text;
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

    bool scalar(cjson_kind kind, const string_t &value) {
        before();
        std::size_t start = text.size();
        text += value;
        return after(kind, start, nullptr);
    }

    /// Ends a value. `decoded` is that of a string.
    bool after(cjson_kind kind, std::size_t start, const string_t *decoded) {
        if (depth == 0) {
            is_other = true;
            return true;
        }
        if (depth > 1) return true;
        cjson_value value = {};
        value.name = name.data();
        value.name_count = name.size();
        value.kind = kind;
        value.json = text.data() + start;
        value.json_count = text.size() - start;
        value.text = decoded == nullptr ? value.json : decoded->data();
        value.text_count = decoded == nullptr ? value.json_count : decoded->size();
        visitor(&value, context);
        text.clear();
        name.clear();
        return true;
    }

    bool start(char bracket, cjson_kind kind) {
        if (depth == 0) {
            is_other = kind != outermost;
        } else {
            before();
            text += bracket;
        }
        depth += 1;
        needs_comma = false;
        // The rest is not worth reading.
        return !is_other;
    }

    bool end(char bracket, cjson_kind kind) {
        depth -= 1;
        needs_comma = true;
        if (depth == 0) return true;
        text += bracket;
        return after(kind, 0, nullptr);
    }
};

}

extern "C" cjson_status cjson_visit(
    const char *bytes, size_t count, cjson_kind kind, cjson_visitor visitor, void *context,
    size_t *position) {
    reader reader(kind, visitor, context);
    bool is_read = json::sax_parse(bytes, bytes + count, &reader);
    *position = reader.error_position;
    return reader.is_other ? CJSON_OTHER : is_read ? CJSON_OK : CJSON_INVALID;
}
