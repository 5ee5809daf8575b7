#include "ctoml.h"

#include <string_view>

namespace {

/// Thrown for a check of toml++ by itself that fails.
struct broken_invariant {};

/// Whether the code behind a check handles its failure, too. A table's name that begins with a wrong
/// character fails this one in toml++ 3.3: `[!]`.
constexpr bool is_handled(std::string_view check) {
    return check == "is_bare_key_character(*cp) || is_string_delimiter(*cp)";
}

} // namespace

// toml++ would end the process where a check fails, or assume in optimised code that none does.
#undef NDEBUG
#define TOML_ASSERT(check)                                                                         \
    do {                                                                                           \
        if (!is_handled(#check) && !(check)) throw broken_invariant();                             \
    } while (false)

// The headers alone: a shared library would be one more file to load at each start.
#define TOML_HEADER_ONLY 1
// Without, its functions are `noexcept`.
#define TOML_EXCEPTIONS 1
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

#include <charconv>
#include <deque>

namespace {

struct owned_document : ctoml_document {
    std::vector<ctoml_node> all;
    /// Their keys and texts, and the message of the error, which never move.
    std::deque<std::string> texts;

    owned_document() : ctoml_document() {}

    void fail(uint32_t line, uint32_t column, std::string_view message) {
        // toml++ has no position for an empty document.
        error_line = line > 0 ? line : 1;
        error_column = column > 0 ? column : 1;
        const std::string &kept = keep(message);
        error = kept.data();
        error_count = kept.size();
    }

    void add_table(const toml::table &table, int32_t parent, int depth) {
        for (const auto &[key, node] : table) {
            add(node, parent, depth, key.str(), key.source().begin.line);
        }
    }

private:
    std::string &keep(std::string_view text) { return texts.emplace_back(text); }

    void add(
        const toml::node &node, int32_t parent, int depth, std::string_view key, uint32_t line) {
        const std::string &kept = keep(key);
        ctoml_node added = {};
        added.kind = kind(node, depth);
        added.parent = parent;
        added.line = line;
        added.key = kept.data();
        added.key_count = kept.size();
        const std::string &text = keep(added.kind == CTOML_OTHER ? "" : scalar(node));
        added.text = text.data();
        added.text_count = text.size();
        auto index = static_cast<int32_t>(all.size());
        all.push_back(added);
        if (added.kind == CTOML_TABLE) add_table(*node.as_table(), index, depth + 1);
        if (added.kind != CTOML_ARRAY) return;
        for (const toml::node &element : *node.as_array()) {
            add(element, index, depth + 1, "", element.source().begin.line);
        }
    }

    static ctoml_kind kind(const toml::node &node, int depth) {
        switch (node.type()) {
        case toml::node_type::table: return depth < CTOML_MAXIMUM_DEPTH ? CTOML_TABLE : CTOML_OTHER;
        case toml::node_type::string: return CTOML_STRING;
        case toml::node_type::integer:
            return node.as_integer()->flags() == toml::value_flags::none ? CTOML_INTEGER
                                                                         : CTOML_OTHER;
        case toml::node_type::floating_point: return CTOML_FLOAT;
        case toml::node_type::boolean: return CTOML_BOOLEAN;
        case toml::node_type::array:
            for (const toml::node &element : *node.as_array()) {
                switch (element.is_array() ? CTOML_OTHER : kind(element, CTOML_MAXIMUM_DEPTH)) {
                case CTOML_STRING:
                case CTOML_INTEGER:
                case CTOML_FLOAT: break;
                default: return CTOML_OTHER;
                }
            }
            return CTOML_ARRAY;
        default: return CTOML_OTHER;
        }
    }

    static std::string scalar(const toml::node &node) {
        if (auto string = node.as_string()) return string->get();
        if (auto integer = node.as_integer()) return std::to_string(integer->get());
        if (auto boolean = node.as_boolean()) return boolean->get() ? "true" : "false";
        auto number = node.as_floating_point();
        if (!number) return "";
        char digits[400];
        auto result = std::to_chars(
            digits, digits + sizeof digits, number->get(), std::chars_format::fixed);
        return std::string(digits, result.ptr);
    }
};

/// The first line with too many dots; 0 without one.
uint32_t line_of_dots(std::string_view bytes) {
    uint32_t line = 1;
    int dots = 0;
    for (char byte : bytes) {
        if (byte == '\n') {
            line += 1;
            dots = 0;
        } else if (byte == '.') {
            dots += 1;
            if (dots > CTOML_MAXIMUM_DOTS) return line;
        }
    }
    return 0;
}

} // namespace

extern "C" const ctoml_document *ctoml_parse(const char *bytes, size_t count) {
    auto document = new owned_document();
    std::string_view text(bytes, count);
    if (uint32_t line = line_of_dots(text)) {
        document->fail(line, 1, "too many dots in one line");
        return document;
    }
    try {
        document->add_table(toml::parse(text), CTOML_ROOT, 0);
        document->nodes = document->all.data();
        document->count = document->all.size();
    } catch (const toml::parse_error &error) {
        document->fail(
            error.source().begin.line, error.source().begin.column, error.description());
    } catch (const broken_invariant &) {
        document->fail(1, 1, "toml++ cannot read this file");
    }
    return document;
}

extern "C" void ctoml_free(const ctoml_document *document) {
    delete static_cast<const owned_document *>(document);
}
