// Result<T> holds a value or an Error.
//
// External faults (a missing file, a bad request, a dead peer) are values; bugs are assertions
// (check.hpp). An Error has one of a small closed set of kinds, named by what the caller can do
// about it, and a message for people. Callers add context as an error passes up, outermost first:
// "reading channel train: GET s3://b/k: 503 Slow Down". Where callers must tell two errors of one
// kind apart, the module that reports them defines an enum of details. Messages are never parsed.
//
// Threads: plain values.
#pragma once

#include <cassert>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <variant>

namespace trainyard {

enum class Kind {
  invalid,      // the request is wrong: change it
  denied,       // not allowed: obtain the permission
  not_found,    // it does not exist: look elsewhere
  conflict,     // it conflicts with the current state: read again, then decide
  exhausted,    // a limit was reached: free something, or wait
  unavailable,  // not now: try again later
  cancelled,    // the caller or a deadline gave up
  corrupt,      // stored or received bytes are invalid: restore them
  internal,     // a bug that was caught at the edge of a module: report it
};

std::string_view to_string(Kind kind);

// ErrorDetail holds an enumerator of a module's own enum of errors, as in
// not_found("..", LogFault::no_group). Empty by default.
class ErrorDetail {
 public:
  ErrorDetail() = default;
  template <class E>
  requires std::is_enum_v<E> ErrorDetail(E value)
      : enum_(&typeid(E)), value_(static_cast<int>(value)) {}

  // Returns the enumerator; nullopt if the detail is empty or of another enum.
  template <class E>
  std::optional<E> as() const {
    return enum_ && *enum_ == typeid(E) ? std::optional(static_cast<E>(value_)) : std::nullopt;
  }

 private:
  const std::type_info* enum_ = nullptr;
  int value_ = 0;
};

struct Error {
  Kind kind = Kind::internal;
  std::string message;
  ErrorDetail detail = {};
  uint32_t context_bytes = 0;  // length of the context that in() put in front of the message

  // Puts the operation that failed in front of the message.
  Error in(std::string_view doing) && {
    message.insert(0, ": ").insert(0, doing);
    context_bytes += uint32_t(doing.size() + 2);
    return std::move(*this);
  }
  // Returns the message without the context that in() added.
  std::string_view cause() const {
    return std::string_view(message).substr(context_bytes <= message.size() ? context_bytes : 0);
  }

  // Returns true if the error has this detail.
  template <class E>
  bool is(E value) const {
    return detail.as<E>() == value;
  }
};

inline Error invalid(std::string message, ErrorDetail detail = {}) {
  return {Kind::invalid, std::move(message), detail};
}
inline Error denied(std::string message, ErrorDetail detail = {}) {
  return {Kind::denied, std::move(message), detail};
}
inline Error not_found(std::string message, ErrorDetail detail = {}) {
  return {Kind::not_found, std::move(message), detail};
}
inline Error conflict(std::string message, ErrorDetail detail = {}) {
  return {Kind::conflict, std::move(message), detail};
}
inline Error exhausted(std::string message, ErrorDetail detail = {}) {
  return {Kind::exhausted, std::move(message), detail};
}
inline Error unavailable(std::string message, ErrorDetail detail = {}) {
  return {Kind::unavailable, std::move(message), detail};
}
inline Error cancelled(std::string message, ErrorDetail detail = {}) {
  return {Kind::cancelled, std::move(message), detail};
}
inline Error corrupt(std::string message, ErrorDetail detail = {}) {
  return {Kind::corrupt, std::move(message), detail};
}
inline Error internal(std::string message, ErrorDetail detail = {}) {
  return {Kind::internal, std::move(message), detail};
}

// Makes "MESSAGE: No such file or directory", with the kind that fits errno. The first form reads
// errno.
Error from_errno(std::string message);
Error from_errno(std::string message, int error_number);

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  explicit operator bool() const { return state_.index() == 0; }

  // Requires: *this holds a value.
  T& value() & { return assert(*this), std::get<0>(state_); }
  const T& value() const& { return assert(*this), std::get<0>(state_); }
  T&& value() && { return assert(*this), std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  // Requires: *this holds an error.
  const Error& error() const& { return assert(!*this), std::get<1>(state_); }
  Error&& error() && { return assert(!*this), std::get<1>(std::move(state_)); }

  // Adds context to the error, if there is one.
  Result in(std::string_view doing) && {
    if (!*this) return std::move(*this).error().in(doing);
    return std::move(*this);
  }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}

  explicit operator bool() const { return !error_; }
  void value() const { assert(!error_); }
  const Error& error() const& { return assert(error_), *error_; }
  Error&& error() && { return assert(error_), *std::move(error_); }

  Result in(std::string_view doing) && {
    if (error_) return std::move(*error_).in(doing);
    return {};
  }

 private:
  std::optional<Error> error_;
};

inline Result<void> ok() { return {}; }

}  // namespace trainyard

// Evaluates to the value of EXPRESSION, a Result. On error it returns that error from the enclosing
// function.
//   auto bytes = TRY(read_file(path).in("reading the config"));
#define TRY(expression)                                      \
  ({                                                         \
    auto try_result_ = (expression);                         \
    if (!try_result_) return std::move(try_result_).error(); \
    std::move(try_result_).value();                          \
  })
