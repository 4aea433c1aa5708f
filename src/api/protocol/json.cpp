#include "protocol/json.hpp"

#include <simdjson.h>

#include <cmath>

#include "base/enum_table.hpp"
#include "base/text.hpp"
#include "protocol/values.hpp"

namespace trainyard::api {
namespace {

using shapes::Member;
using shapes::Shape;
using shapes::ShapeKind;
using shapes::TimestampFormat;
using simdjson::dom::element;
using simdjson::dom::element_type;

std::string_view token_name(element_type type) {
  switch (type) {
    case element_type::ARRAY:
      return "START_ARRAY";
    case element_type::OBJECT:
      return "START_OBJECT";
    case element_type::INT64:
    case element_type::UINT64:
    case element_type::DOUBLE:
      return "NUMBER_VALUE";
    case element_type::STRING:
      return "STRING_VALUE";
    case element_type::BOOL:
      return "BOOLEAN_VALUE";
    case element_type::NULL_VALUE:
      return "NULL_VALUE";
  }
  return "";
}

constexpr EnumTable<ShapeKind> kWanted{"kind of shape",
                                       {{ShapeKind::structure, "a structure"},
                                        {ShapeKind::list, "a List"},
                                        {ShapeKind::map, "a Map"},
                                        {ShapeKind::string, "a String"},
                                        {ShapeKind::blob, "a Blob"},
                                        {ShapeKind::integer, "an Integer"},
                                        {ShapeKind::floating, "a Float"},
                                        {ShapeKind::boolean, "a Boolean"},
                                        {ShapeKind::timestamp, "a Timestamp"}}};

class Reader {
 public:
  Result<void> read(const Shape& shape, TimestampFormat format, element from, void* to, int depth) {
    if (depth > kDepthMax)
      return invalid("the document is nested too deeply: at most " + std::to_string(kDepthMax) +
                     " levels");
    if (++values_ > kValuesMax)
      return invalid("the document has more than " + std::to_string(kValuesMax) + " values");
    switch (shape.kind) {
      case ShapeKind::structure:
        return structure(shape, from, to, depth);
      case ShapeKind::list:
        return list(shape, from, to, depth);
      case ShapeKind::map:
        return map(shape, from, to, depth);
      case ShapeKind::integer:
        return integer(shape, from, *static_cast<int64_t*>(to));
      case ShapeKind::floating:
        return floating(shape, from, *static_cast<double*>(to));
      case ShapeKind::boolean:
        if (from.type() != element_type::BOOL) return mismatch(shape, from);
        *static_cast<bool*>(to) = from.get_bool().value_unsafe();
        return ok();
      case ShapeKind::string:
        if (from.type() != element_type::STRING) return mismatch(shape, from);
        *static_cast<std::string*>(to) = from.get_string().value_unsafe();
        return ok();
      case ShapeKind::blob: {
        if (from.type() != element_type::STRING) return mismatch(shape, from);
        *static_cast<std::string*>(to) = TRY(from_base64(from.get_string().value_unsafe()));
        return ok();
      }
      case ShapeKind::timestamp:
        return timestamp(shape, format, from, *static_cast<Instant*>(to));
    }
    return ok();
  }

 private:
  static Error mismatch(const Shape& shape, element from) {
    return invalid(std::string(token_name(from.type())) + " can not be converted to " +
                   std::string(kWanted.text(shape.kind)));
  }

  Result<void> structure(const Shape& shape, element from, void* to, int depth) {
    if (from.type() != element_type::OBJECT) return mismatch(shape, from);
    const simdjson::dom::object object = from.get_object().value_unsafe();
    for (const auto field : object) {
      if (field.value.is_null()) continue;
      for (const Member& member : shape.members) {
        if (member.name != field.key) continue;
        TRY(read(*member.shape, member.timestamp_format, field.value, member.emplace(to),
                 depth + 1));
        break;
      }
    }
    return ok();
  }

  Result<void> list(const Shape& shape, element from, void* to, int depth) {
    if (from.type() != element_type::ARRAY) return mismatch(shape, from);
    const simdjson::dom::array array = from.get_array().value_unsafe();
    for (const element item : array)
      TRY(read(*shape.element, TimestampFormat::unset, item, shape.append(to), depth + 1));
    return ok();
  }

  Result<void> map(const Shape& shape, element from, void* to, int depth) {
    if (from.type() != element_type::OBJECT) return mismatch(shape, from);
    const simdjson::dom::object object = from.get_object().value_unsafe();
    for (const auto field : object)
      TRY(read(*shape.element, TimestampFormat::unset, field.value,
               shape.insert(to, std::string(field.key)), depth + 1));
    return ok();
  }

  static Result<void> integer(const Shape& shape, element from, int64_t& to) {
    if (from.type() == element_type::INT64) {
      to = from.get_int64().value_unsafe();
      return ok();
    }
    // JSON has one kind of number, so 5.0 is an integer.
    if (from.type() == element_type::DOUBLE) {
      const double value = from.get_double().value_unsafe();
      if (value == std::floor(value) && std::fabs(value) < 9007199254740992.0) {
        to = static_cast<int64_t>(value);
        return ok();
      }
    }
    return mismatch(shape, from);
  }

  static Result<void> floating(const Shape& shape, element from, double& to) {
    if (from.type() == element_type::STRING) {
      const std::string_view text = from.get_string().value_unsafe();
      if (text != "NaN" && text != "Infinity" && text != "-Infinity") return mismatch(shape, from);
      to = *read_double(text);
      return ok();
    }
    if (!from.is_number()) return mismatch(shape, from);
    to = from.get_double().value_unsafe();
    return ok();
  }

  static Result<void> timestamp(const Shape& shape, TimestampFormat format, element from,
                                Instant& to) {
    if (from.is_number()) {
      to = TRY(instant_of_epoch(from.get_double().value_unsafe()));
      return ok();
    }
    if (from.type() != element_type::STRING) return mismatch(shape, from);
    to = TRY(read_timestamp(from.get_string().value_unsafe(), format));
    return ok();
  }

  size_t values_ = 0;
};

class Writer {
 public:
  explicit Writer(std::string& out) : out_(out) {}

  void write(const Shape& shape, TimestampFormat format, const void* value) {
    switch (shape.kind) {
      case ShapeKind::structure:
        return structure(shape, value);
      case ShapeKind::list:
        return list(shape, value);
      case ShapeKind::map:
        return map(shape, value);
      case ShapeKind::string:
        return append_json_string(out_, *static_cast<const std::string*>(value));
      case ShapeKind::blob:
        return append_json_string(out_, to_base64(*static_cast<const std::string*>(value)));
      case ShapeKind::integer:
        out_ += std::to_string(*static_cast<const int64_t*>(value));
        return;
      case ShapeKind::floating:
        return floating(*static_cast<const double*>(value));
      case ShapeKind::boolean:
        out_ += *static_cast<const bool*>(value) ? "true" : "false";
        return;
      case ShapeKind::timestamp: {
        const Instant instant = *static_cast<const Instant*>(value);
        if (format == TimestampFormat::unset) format = shape.timestamp_format;
        if (format == TimestampFormat::unset || format == TimestampFormat::epoch_seconds)
          out_ += epoch_text(instant);
        else
          append_json_string(out_, timestamp_text(instant, format));
        return;
      }
    }
  }

 private:
  void structure(const Shape& shape, const void* value) {
    out_ += '{';
    bool first = true;
    for (const Member& member : shape.members) {
      const void* found = member.find(value);
      if (!found) continue;
      if (!first) out_ += ',';
      first = false;
      out_.append("\"").append(member.name).append("\":");
      write(*member.shape, member.timestamp_format, found);
    }
    out_ += '}';
  }

  void list(const Shape& shape, const void* value) {
    out_ += '[';
    const size_t size = shape.size(value);
    for (size_t i = 0; i < size; ++i) {
      if (i > 0) out_ += ',';
      write(*shape.element, TimestampFormat::unset, shape.at(value, i));
    }
    out_ += ']';
  }

  void map(const Shape& shape, const void* value) {
    struct Visit {
      Writer* writer;
      const Shape* element;
      bool first = true;
    } visit{this, shape.element};
    out_ += '{';
    shape.each(value, &visit, [](void* context, const std::string& key, const void* inner) {
      auto& state = *static_cast<Visit*>(context);
      if (!state.first) state.writer->out_ += ',';
      state.first = false;
      append_json_string(state.writer->out_, key);
      state.writer->out_ += ':';
      state.writer->write(*state.element, TimestampFormat::unset, inner);
    });
    out_ += '}';
  }

  // Writes 2 as "2.0", as AWS does: clients in dynamic languages read "2" as an integer.
  void floating(double value) {
    const std::string text = double_text(value);
    if (!std::isfinite(value)) return append_json_string(out_, text);
    out_ += text;
    if (text.find_first_of(".e") == std::string::npos) out_ += ".0";
  }

  std::string& out_;
};

// Each thread reuses one parser. Its buffers grow to the largest document so far, which the limit
// on bodies bounds.
simdjson::dom::parser& thread_parser() {
  thread_local simdjson::dom::parser parser;
  return parser;
}

}  // namespace

Result<void> read_json(const Shape& shape, std::string_view text, void* structure) {
  if (trim(text).empty()) return ok();
  auto& parser = thread_parser();
  if (parser.capacity() < text.size() || parser.max_depth() != size_t(kDepthMax)) {
    if (const auto error = parser.allocate(text.size(), kDepthMax))
      return exhausted(simdjson::error_message(error));
  }
  element root;
  if (const auto error = parser.parse(text.data(), text.size()).get(root))
    return invalid(std::string("the body is not JSON: ") + simdjson::error_message(error));
  return Reader().read(shape, TimestampFormat::unset, root, structure, 0);
}

void write_json(const Shape& shape, const void* structure, std::string& out) {
  Writer(out).write(shape, TimestampFormat::unset, structure);
}

void append_json_string(std::string& out, std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  if (!is_utf8(text)) return append_json_string(out, to_utf8(text));
  out += '"';
  size_t begun = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c >= 0x20 && c != '"' && c != '\\') continue;
    out.append(text.substr(begun, i - begun));
    begun = i + 1;
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        out.append("\\u00").append(1, kHex[c >> 4]).append(1, kHex[c & 15]);
    }
  }
  out.append(text.substr(begun)).append("\"");
}

}  // namespace trainyard::api
