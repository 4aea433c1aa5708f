// EnumTable lists the texts of an enum's values once. Both conversions, to text and from text, are
// derived from it.
//
//   enum class State { waiting, active };
//   constexpr EnumTable<State> kStates{
//       "state", {{State::waiting, "waiting"}, {State::active, "active"}}};
//   kStates.text(State::active)   // "active"
//   kStates.parse("lost")         // invalid: unknown state 'lost'
//
// A table that lacks an enumerator, or lists them in a different order, does not compile.
// The number of enumerators is derived from the compiler's names of values, which must be 0, 1, 2,
// ..
//
// Threads: constants. Errors: parse() returns invalid, with the text (shortened).
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

#include "base/result.hpp"

namespace trainyard {

// True if the enum has an enumerator with that value. g++ and clang then write the value as
// "Kind::invalid", and otherwise as "(Kind)9".
template <auto value>
constexpr bool is_enumerator() {
  constexpr std::string_view text = __PRETTY_FUNCTION__;  // "... value = trainyard::Kind::invalid]"
  const size_t start = text.find_last_of(":) =");
  const char first = text[start + 1];
  return !(first >= '0' && first <= '9') && first != '-';
}

template <class E, size_t counted = 0>
constexpr size_t count_enumerators() {
  if constexpr (is_enumerator<static_cast<E>(counted)>())
    return count_enumerators<E, counted + 1>();
  else
    return counted;
}

// The number of enumerators. Requires: their values are 0, 1, 2, ..
template <class E>
inline constexpr size_t kEnumerators = count_enumerators<E>();

template <class E>
inline constexpr E kLastEnumerator = static_cast<E>(kEnumerators<E> - 1);

// All enumerators, in their order.
template <class E>
constexpr std::array<E, kEnumerators<E>> enumerators() {
  std::array<E, kEnumerators<E>> all{};
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<E>(i);
  return all;
}

// Makes invalid: "unknown state 'TEXT'".
Error unknown_text(std::string_view text, std::string_view set);

template <class E>
class EnumTable {
 public:
  struct Entry {
    E value;
    std::string_view text;
  };

  // `set` names the enum in errors: "state".
  consteval EnumTable(std::string_view set, const Entry (&entries)[kEnumerators<E>]) : set_(set) {
    for (size_t i = 0; i < kEnumerators<E>; ++i) {
      if (entries[i].value != static_cast<E>(i))
        throw "the table must list all enumerators, in their order";
      texts_[i] = entries[i].text;
      for (size_t before = 0; before < i; ++before)
        if (texts_[before] == texts_[i]) throw "two enumerators have the same text";
    }
  }

  constexpr std::string_view text(E value) const {
    return static_cast<size_t>(value) < kEnumerators<E> ? texts_[static_cast<size_t>(value)]
                                                        : "unknown";
  }
  constexpr std::optional<E> find(std::string_view text) const {
    for (size_t i = 0; i < kEnumerators<E>; ++i)
      if (texts_[i] == text) return static_cast<E>(i);
    return std::nullopt;
  }
  Result<E> parse(std::string_view text) const {
    if (const auto value = find(text)) return *value;
    return unknown_text(text, set_);
  }

 private:
  std::string_view set_;
  std::array<std::string_view, kEnumerators<E>> texts_{};
};

}  // namespace trainyard
