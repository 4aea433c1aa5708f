#include "protocol/constraints.hpp"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <mutex>
#include <vector>

#include "base/check.hpp"
#include "base/nearest.hpp"
#include "base/text.hpp"
#include "protocol/values.hpp"

namespace trainyard::api {
namespace {

using shapes::Member;
using shapes::Shape;
using shapes::ShapeKind;

constexpr size_t kViolationsShownMax = 100;   // further violations are only counted
constexpr size_t kValueBytesShownMax = 1024;  // of an invalid value
// Steps of one match. The models' patterns need a few hundred for long texts.
constexpr uint32_t kMatchLimit = 100'000;
constexpr uint32_t kHeapLimitKib = 4096;
constexpr int kCircleDepthMax = 200;
constexpr size_t kEnumValuesMax = 30;   // larger sets are not shown whole
constexpr size_t kEnumValuesShown = 3;  // of larger sets
constexpr size_t kNearTextMax = 64;     // bytes of a value that are compared with the set

std::string number_text(double value) { return double_text(value); }

}  // namespace

// Translates a regular expression from Java's syntax, which the models use, to PCRE's. They differ
// in one class.
static std::string to_pcre(std::string_view text) {
  static constexpr std::string_view kAlnum = "\\p{Alnum}";
  std::string out(text);
  for (size_t at = out.find(kAlnum); at != std::string::npos; at = out.find(kAlnum, at))
    out.replace(at, kAlnum.size(), "[:alnum:]");
  return out;
}

class Constraints::Pattern {
 public:
  ~Pattern() {
    pcre2_match_context_free(limits_);
    pcre2_code_free(code_);
  }

  bool compiles(std::string_view text) const {
    prepare(text);
    return code_ != nullptr;
  }

  // Matches the whole value, as AWS does.
  bool matches(std::string_view text, std::string_view value) const {
    prepare(text);
    CHECK(code_ != nullptr, "every pattern of an input shape compiles (constraints_test)");
    struct Free {
      void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
    };
    thread_local const std::unique_ptr<pcre2_match_data, Free> data{
        pcre2_match_data_create(1, nullptr)};
    return pcre2_match(code_, reinterpret_cast<PCRE2_SPTR>(value.data()), value.size(), 0, 0,
                       data.get(), limits_) >= 0;
  }

 private:
  void prepare(std::string_view text) const {
    std::call_once(once_, [&] {
      int error = 0;
      PCRE2_SIZE where = 0;
      const std::string expression = to_pcre(text);
      code_ = pcre2_compile(
          reinterpret_cast<PCRE2_SPTR>(expression.data()), expression.size(),
          PCRE2_UTF | PCRE2_ANCHORED | PCRE2_ENDANCHORED | PCRE2_ALT_BSUX | PCRE2_DOLLAR_ENDONLY,
          &error, &where, nullptr);
      if (!code_) return;
      // without JIT, the interpreter gives the same results
      pcre2_jit_compile(code_, PCRE2_JIT_COMPLETE);
      limits_ = pcre2_match_context_create(nullptr);
      pcre2_set_match_limit(limits_, kMatchLimit);
      pcre2_set_heap_limit(limits_, kHeapLimitKib);
    });
  }

  mutable std::once_flag once_;
  mutable pcre2_code* code_ = nullptr;
  mutable pcre2_match_context* limits_ = nullptr;
};

class Constraints::Check {
 public:
  explicit Check(const Constraints& constraints) : constraints_(constraints) {}

  void structure(const Shape& shape, const void* value) {
    size_t set = 0;
    for (const Member& member : shape.members) {
      const size_t length = path_.size();
      if (!path_.empty()) path_ += '.';
      path_ += member.path_name;
      const void* found = member.find(value);
      if (found) {
        ++set;
        any(*member.shape, found);
      } else if (member.required) {
        add("Value null at '" + path_ + "' failed to satisfy constraint: Member must not be null");
      }
      path_.resize(length);
    }
    if (shape.is_union && set != 1)
      add("Value at '" + path_ +
          "' failed to satisfy constraint: Member must have exactly one of its members set");
  }

  std::optional<std::string> message() const {
    if (count_ == 0) return {};
    std::string out = std::to_string(count_) + (count_ == 1 ? " validation error detected: "
                                                            : " validation errors detected: ");
    return out + text_;
  }

 private:
  void any(const Shape& shape, const void* value) {
    switch (shape.kind) {
      case ShapeKind::structure:
        return structure(shape, value);
      case ShapeKind::list:
        return list(shape, value);
      case ShapeKind::map:
        return map(shape, value);
      default:
        break;
    }
    if (!constrained(shape)) return;
    for (const auto& wanted : violated(shape, value))
      add("Value '" + shown(shape, value) + "' at '" + path_ +
          "' failed to satisfy constraint: " + wanted);
  }

  static bool constrained(const Shape& shape) {
    return shape.minimum || shape.maximum || !shape.pattern.empty() || !shape.values.empty();
  }

  static std::string shown(const Shape& shape, const void* value) {
    return shorten(scalar_text(shape, {}, value), kValueBytesShownMax);
  }

  // The constraints that a scalar violates, in AWS's texts.
  std::vector<std::string> violated(const Shape& shape, const void* value) const {
    std::vector<std::string> out;
    if (shape.kind == ShapeKind::string || shape.kind == ShapeKind::blob) {
      const std::string& text = *static_cast<const std::string*>(value);
      length(shape, shape.kind == ShapeKind::blob ? text.size() : count_characters(text), out);
      if (!shape.pattern.empty() &&
          !constraints_.patterns_[shape.pattern_index].matches(shape.pattern, text))
        out.push_back("Member must satisfy regular expression pattern: " +
                      std::string(shape.pattern));
      if (!shape.values.empty() &&
          std::find(shape.values.begin(), shape.values.end(), text) == shape.values.end())
        out.push_back(value_set(shape, text));
    } else if (shape.kind == ShapeKind::integer || shape.kind == ShapeKind::floating) {
      const double number = shape.kind == ShapeKind::integer
                                ? double(*static_cast<const int64_t*>(value))
                                : *static_cast<const double*>(value);
      if (shape.maximum && !(number <= *shape.maximum))
        out.push_back("Member must have value less than or equal to " +
                      number_text(*shape.maximum));
      if (shape.minimum && !(number >= *shape.minimum))
        out.push_back("Member must have value greater than or equal to " +
                      number_text(*shape.minimum));
    }
    return out;
  }

  static void length(const Shape& shape, size_t found, std::vector<std::string>& out) {
    if (shape.maximum && double(found) > *shape.maximum)
      out.push_back("Member must have length less than or equal to " + number_text(*shape.maximum));
    if (shape.minimum && double(found) < *shape.minimum)
      out.push_back("Member must have length greater than or equal to " +
                    number_text(*shape.minimum));
  }

  // `given`: the invalid value, or "" if it is not known. Long sets (instance types) are cut.
  static std::string value_set(const Shape& shape, const std::string& given) {
    std::string out = "Member must satisfy enum value set: [";
    const size_t shown =
        shape.values.size() > kEnumValuesMax ? kEnumValuesShown : shape.values.size();
    for (size_t i = 0; i < shown; ++i) out.append(i ? ", " : "").append(shape.values[i]);
    if (shown < shape.values.size())
      out += ", .. " + std::to_string(shape.values.size() - shown) + " more";
    out += "]";
    if (given.empty()) return out;
    const std::string near = nearest(shorten(given, kNearTextMax), shape.values);
    return near.empty() ? out : out + ". Did you mean " + near + "?";
  }

  // All constraints of a scalar in one text, as AWS reports them for elements of containers.
  static std::string all_of(const Shape& shape) {
    std::vector<std::string> parts;
    const bool text = shape.kind == ShapeKind::string || shape.kind == ShapeKind::blob;
    const std::string what = text ? "length" : "value";
    if (shape.maximum)
      parts.push_back("Member must have " + what + " less than or equal to " +
                      number_text(*shape.maximum));
    if (shape.minimum)
      parts.push_back("Member must have " + what + " greater than or equal to " +
                      number_text(*shape.minimum));
    if (!shape.pattern.empty())
      parts.push_back("Member must satisfy regular expression pattern: " +
                      std::string(shape.pattern));
    if (!shape.values.empty()) parts.push_back(value_set(shape, ""));
    std::string out = "[";
    for (size_t i = 0; i < parts.size(); ++i) out.append(i ? ", " : "").append(parts[i]);
    return out + "]";
  }

  void list(const Shape& shape, const void* value) {
    const size_t size = shape.size(value);
    std::vector<std::string> broken;
    length(shape, size, broken);
    const bool scalars = is_scalar(shape.element->kind);
    if (scalars && constrained(*shape.element)) {
      for (size_t i = 0; i < size; ++i) {
        if (violated(*shape.element, shape.at(value, i)).empty()) continue;
        broken.push_back("Member must satisfy constraint: " + all_of(*shape.element));
        break;
      }
    }
    for (const auto& wanted : broken)
      add("Value '" + list_text(shape, value) + "' at '" + path_ +
          "' failed to satisfy constraint: " + wanted);
    if (scalars) return;
    for (size_t i = 0; i < size; ++i) {
      const size_t before = path_.size();
      path_.append(".").append(std::to_string(i + 1)).append(".member");
      any(*shape.element, shape.at(value, i));
      path_.resize(before);
    }
  }

  static std::string list_text(const Shape& shape, const void* value) {
    std::string out = "[";
    const size_t size = shape.size(value);
    for (size_t i = 0; i < size && out.size() < kValueBytesShownMax; ++i) {
      if (i > 0) out += ", ";
      out += is_scalar(shape.element->kind) ? shown(*shape.element, shape.at(value, i))
                                            : std::string(shape.element->name);
    }
    return shorten(out, kValueBytesShownMax) + "]";
  }

  void map(const Shape& shape, const void* value) {
    struct Visit {
      Check* check;
      const Shape* shape;
      bool keys_broken = false, values_broken = false;
      std::string text;
    } visit{this, &shape, false, false, "{"};
    shape.each(value, &visit, [](void* context, const std::string& key, const void* inner) {
      auto& state = *static_cast<Visit*>(context);
      const Shape& element = *state.shape->element;
      if (constrained(*state.shape->key) && !state.check->violated(*state.shape->key, &key).empty())
        state.keys_broken = true;
      if (is_scalar(element.kind) && constrained(element) &&
          !state.check->violated(element, inner).empty())
        state.values_broken = true;
      if (state.text.size() < kValueBytesShownMax) {
        if (state.text.size() > 1) state.text += ", ";
        state.text.append(key).append("=").append(
            is_scalar(element.kind) ? shown(element, inner) : std::string(element.name));
      }
    });
    const std::string text = shorten(visit.text, kValueBytesShownMax) + "}";
    std::vector<std::string> broken;
    length(shape, shape.size(value), broken);
    if (visit.keys_broken)
      broken.push_back("Map keys must satisfy constraint: " + all_of(*shape.key));
    if (visit.values_broken)
      broken.push_back("Map value must satisfy constraint: " + all_of(*shape.element));
    for (const auto& wanted : broken)
      add("Value '" + text + "' at '" + path_ + "' failed to satisfy constraint: " + wanted);
    if (is_scalar(shape.element->kind)) return;
    shape.each(value, &visit, [](void* context, const std::string& key, const void* inner) {
      auto& state = *static_cast<Visit*>(context);
      const size_t before = state.check->path_.size();
      state.check->path_.append(".").append(shorten(key, 256)).append(".member");
      state.check->any(*state.shape->element, inner);
      state.check->path_.resize(before);
    });
  }

  void add(std::string violation) {
    if (count_++ >= kViolationsShownMax) return;
    if (!text_.empty()) text_ += "; ";
    text_ += violation;
  }

  const Constraints& constraints_;
  std::string path_;
  std::string text_;
  size_t count_ = 0;
};

Constraints::Constraints(const shapes::Service& service)
    : patterns_(std::make_unique<Pattern[]>(service.patterns)) {}
Constraints::~Constraints() = default;

std::optional<std::string> Constraints::check(const Shape& shape, const void* structure) const {
  Check check(*this);
  check.structure(shape, structure);
  return check.message();
}

namespace {
template <class Visit>
void walk(const Shape& shape, int depth, const Visit& visit) {
  if (depth > kCircleDepthMax) return;
  visit(shape);
  for (const Member& member : shape.members) walk(*member.shape, depth + 1, visit);
  if (shape.element) walk(*shape.element, depth + 1, visit);
  if (shape.key) walk(*shape.key, depth + 1, visit);
}
}  // namespace

bool Constraints::patterns_compile(const Shape& shape) const {
  bool good = true;
  walk(shape, 0, [&](const Shape& inner) {
    if (!inner.pattern.empty())
      good = good && patterns_[inner.pattern_index].compiles(inner.pattern);
  });
  return good;
}

}  // namespace trainyard::api
