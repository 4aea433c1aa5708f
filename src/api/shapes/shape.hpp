// Defines the tables that describe shapes, so that one generic reader, writer and checker works on
// all of them.
//
// For each service of operations.txt, shapes/generate.py makes the structures (plain C++, with
// optional members) and tables of the types below. The generic code walks the tables, and accesses
// the structures through the functions in them; it has no template per shape.
//
// Threads: all tables are constants. Lifetime: that of the program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.hpp"

namespace trainyard::api::shapes {

enum class ShapeKind : uint8_t {
  structure,
  list,
  map,
  string,
  blob,
  integer,
  floating,
  boolean,
  timestamp
};
// `unset`: the default of the protocol.
enum class TimestampFormat : uint8_t { unset, iso8601, http_date, epoch_seconds };
enum class Location : uint8_t { body, header, prefixed_headers, uri, query_string, status_code };

struct Shape;

// Makes and finds the value of an optional member. One object for each type, shared by its members.
struct MemberAccess {
  void* (*emplace)(void* member);
  const void* (*find)(const void* member);  // nullptr: not set
};

// The C++ types: structure -> its struct, list -> std::vector, map -> std::map by string, string
// and blob -> std::string, integer -> int64_t, floating -> double, boolean -> bool, timestamp ->
// Instant.
struct Member {
  std::string_view name;        // in the model: "TrainingJobName"
  std::string_view path_name;   // in messages: "trainingJobName"
  std::string_view wire_name;   // in XML, headers, queries: the model's locationName, else the name
  std::string_view query_name;  // in requests of the query protocol
  const Shape* shape;
  bool required;
  Location location;
  TimestampFormat timestamp_format;
  bool streaming;
  bool xml_attribute;
  bool named_on_wire;  // the model has a locationName
  size_t offset;       // in the structure
  const MemberAccess* access;

  void* emplace(void* structure) const {
    return access->emplace(static_cast<char*>(structure) + offset);
  }
  const void* find(const void* structure) const {
    return access->find(static_cast<const char*>(structure) + offset);
  }
};

// Makes and destroys a value whose type only the table has.
struct Lifetime {
  void* (*make)();
  void (*destroy)(void* value);
};

struct Shape {
  ShapeKind kind;
  std::string_view name;
  // Constraints: the length of strings, lists and maps; the value of numbers.
  std::optional<double> minimum = {}, maximum = {};
  std::string_view pattern = {};
  // the pattern's number in the service, for the cache of compiled patterns
  uint32_t pattern_index = 0;
  std::span<const std::string_view> values = {};  // of an enumeration
  TimestampFormat timestamp_format = TimestampFormat::unset;
  // structure
  std::span<const Member> members = {};
  const Member* payload = nullptr;  // the member that is the whole body
  bool is_union = false;
  std::string_view xml_name = {};  // of the root element; "" = the shape's name
  bool unwrapped = false;          // the root element of its document is its only member
  // list and map
  const Shape* element = nullptr;
  const Shape* key = nullptr;
  bool flattened = false;
  bool flattened_in_query = false;     // a list in requests of the query protocol
  std::string_view element_name = {};  // in XML: "member" unless the model has another
  std::string_view key_name = {}, value_name = {};
  void* (*append)(void* list) = nullptr;
  size_t (*size)(const void* container) = nullptr;
  const void* (*at)(const void* list, size_t index) = nullptr;
  void* (*insert)(void* map, std::string&& key) = nullptr;
  void (*each)(const void* map, void* context,
               void (*visit)(void* context, const std::string& key, const void* value)) = nullptr;
};

struct Service;

struct OperationShape {
  const Service* service;
  std::string_view name;
  std::string_view method;  // HTTP's
  std::string_view uri;     // "/{Bucket}/{Key+}?uploads"
  int status;               // of success
  const Shape* input;       // nullptr: none
  const Shape* output;
  Lifetime input_lifetime;
  std::string_view result_wrapper;  // of the query protocol
};

// An operation of the service's model that this server does not offer.
struct AbsentOperation {
  std::string_view name, method, uri;
};

struct Service {
  std::string_view name;           // botocore's: "cloudwatch"
  std::string_view scope;          // in SigV4 scopes: "monitoring"
  std::string_view target_prefix;  // of X-Amz-Target: "SageMaker"; "" = the service has none
  std::string_view json_version;   // "1.1"
  std::string_view api_version;    // of the query protocol: "2010-08-01"
  std::string_view xml_namespace;
  bool query;             // uses the query protocol
  bool ec2_query;         // uses EC2's variant of it
  bool query_compatible;  // its JSON errors also have the query protocol's codes
  std::span<const OperationShape> operations;
  uint32_t patterns;  // the number of patterns
  std::span<const AbsentOperation> absent;
};

// -- templates for the generated tables

// Owns a member of a recursive structure, and copies it with its owner.
template <class T>
class Box {
 public:
  Box() : value_(std::make_unique<T>()) {}
  Box(const Box& other) : value_(std::make_unique<T>(*other.value_)) {}
  Box(Box&&) noexcept = default;
  Box& operator=(const Box& other) { return *value_ = *other.value_, *this; }
  Box& operator=(Box&&) noexcept = default;
  T& operator*() { return *value_; }
  const T& operator*() const { return *value_; }
  T* operator->() { return value_.get(); }
  const T* operator->() const { return value_.get(); }

 private:
  std::unique_ptr<T> value_;
};

template <class T>
void* address(T& value) {
  return &value;
}
template <class T>
void* address(Box<T>& value) {
  return &*value;
}

template <class Optional>
void* emplace_in(void* member) {
  return address(static_cast<Optional*>(member)->emplace());
}
template <class Optional>
const void* find_in(const void* member) {
  auto& found = *const_cast<Optional*>(static_cast<const Optional*>(member));
  return found ? address(*found) : nullptr;
}
template <class Optional>
inline constexpr MemberAccess kAccess = {emplace_in<Optional>, find_in<Optional>};

template <class T>
inline constexpr Lifetime kLifetime = {[]() -> void* { return new T; },
                                       [](void* value) { delete static_cast<T*>(value); }};

template <class T>
void* append_to(void* list) {
  return &static_cast<std::vector<T>*>(list)->emplace_back();
}
template <class T>
size_t size_of(const void* list) {
  return static_cast<const T*>(list)->size();
}
template <class T>
const void* at_of(const void* list, size_t index) {
  return &(*static_cast<const std::vector<T>*>(list))[index];
}
template <class T>
void* insert_into(void* map, std::string&& key) {
  return &static_cast<std::map<std::string, T>*>(map)
              ->insert_or_assign(std::move(key), T())
              .first->second;
}
template <class T>
void each_of(const void* map, void* context,
             void (*visit)(void*, const std::string&, const void*)) {
  for (const auto& [key, value] : *static_cast<const std::map<std::string, T>*>(map))
    visit(context, key, &value);
}

}  // namespace trainyard::api::shapes
