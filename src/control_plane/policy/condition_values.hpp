// ConditionValues holds the condition keys of one request and their values: "aws:SourceIp" ->
// "192.0.2.7".
//
// The ASCII case of names is ignored. A key without a value is not in the request; a key with an
// empty text is.
//
// Threads: a plain value.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trainyard::policy {

class ConditionValues {
 public:
  // Replaces the values of `name`. An empty list removes the key.
  void set(std::string_view name, std::string value);
  void set(std::string_view name, std::vector<std::string> values);

  // Returns the values of `name`; empty if the request does not have the key.
  std::span<const std::string> find(std::string_view name) const;
  // Does the same for a name in lower case.
  std::span<const std::string> find_lower(std::string_view name) const;

 private:
  struct Entry {
    std::string name;  // in lower case
    std::vector<std::string> values;
  };
  std::vector<Entry> entries_;  // some twenty keys: a scan is faster than a tree
};

}  // namespace trainyard::policy
