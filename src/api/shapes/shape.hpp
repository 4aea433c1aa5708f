// Describes a shape in tables: enough for one generic reader, writer and checker to work on all shapes.
//
// shapes/generate.py makes, for each service of operations.txt, the structures (plain C++, every member
// optional) and tables of the types below. The generic code walks the tables and touches the structures
// through the functions that stand in them; it has no template per shape.
//
// Threads: all tables are constants. Lifetime: of the program.
#pragma once

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

enum class ShapeKind : uint8_t { structure, list, map, string, blob, integer, floating, boolean, timestamp };
// `unset`: the protocol's own habit.
enum class TimestampFormat : uint8_t { unset, iso8601, http_date, epoch_seconds };
enum class Location : uint8_t { body, header, prefixed_headers, uri, query_string, status_code };

struct Shape;

// In C++: structure -> its struct, list -> std::vector, map -> std::map by string, string and blob ->
// std::string, integer -> int64_t, floating -> double, boolean -> bool, timestamp -> Instant.
struct Member {
  std::string_view name;       // in the model: "TrainingJobName"
  std::string_view path_name;  // in messages: "trainingJobName"
  std::string_view wire_name;  // in XML, headers, queries: the model's locationName, else the name
  const Shape* shape;
  bool required;
  Location location;
  TimestampFormat timestamp_format;
  bool streaming;
  bool xml_attribute;
  bool named_on_wire;  // the model gives a locationName
  // The member inside its structure: made and found.
  void* (*emplace)(void* structure);
  const void* (*find)(const void* structure);  // nullptr when it is not set
};

struct Shape {
  ShapeKind kind;
  std::string_view name;
  // Constraints. Of strings, lists and maps: length. Of numbers: value.
  std::optional<double> minimum = {}, maximum = {};
  std::string_view pattern = {};
  uint32_t pattern_index = 0;                     // over the service, for the cache of compiled patterns
  std::span<const std::string_view> values = {};  // of an enumeration
  TimestampFormat timestamp_format = TimestampFormat::unset;
  // structure
  std::span<const Member> members = {};
  const Member* payload = nullptr;  // the member that is the whole body
  bool is_union = false;
  std::string_view xml_name = {};  // its root element; "" = the shape's name
  bool unwrapped = false;          // as a document, its one member is the root element
  // list and map: what is inside
  const Shape* element = nullptr;
  const Shape* key = nullptr;
  bool flattened = false;
  std::string_view element_name = {};  // in XML: "member" unless the model says otherwise
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
  std::string_view method;  // of HTTP
  std::string_view uri;     // "/{Bucket}/{Key+}?uploads"
  int status;               // of success
  const Shape* input;       // nullptr: none
  const Shape* output;
  std::string_view result_wrapper;  // of the query protocol
};

struct Service {
  std::string_view name;           // botocore's: "cloudwatch"
  std::string_view scope;          // in SigV4 scopes: "monitoring"
  std::string_view target_prefix;  // of X-Amz-Target: "SageMaker"; "" = the service has none
  std::string_view json_version;   // "1.1"
  std::string_view api_version;    // of the query protocol: "2010-08-01"
  std::string_view xml_namespace;
  bool query;             // speaks the query protocol
  bool query_compatible;  // its JSON errors carry the query protocol's codes
  std::span<const OperationShape> operations;
  uint32_t patterns;  // how many there are
};

// -- what the generated tables are made of ---------------------------------------------------------

// A structure inside itself: an owned one, copied with its owner.
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

template <auto member, class Structure>
void* emplace_member(void* structure) {
  return address((static_cast<Structure*>(structure)->*member).emplace());
}
template <auto member, class Structure>
const void* find_member(const void* structure) {
  auto& found = const_cast<Structure*>(static_cast<const Structure*>(structure))->*member;
  return found ? address(*found) : nullptr;
}

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
  return &static_cast<std::map<std::string, T>*>(map)->insert_or_assign(std::move(key), T()).first->second;
}
template <class T>
void each_of(const void* map, void* context, void (*visit)(void*, const std::string&, const void*)) {
  for (const auto& [key, value] : *static_cast<const std::map<std::string, T>*>(map))
    visit(context, key, &value);
}

}  // namespace trainyard::api::shapes
