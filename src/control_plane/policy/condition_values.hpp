// ConditionValues holds the condition keys of one request and their values: "aws:SourceIp" ->
// "192.0.2.7".
//
// Names compare ignoring ASCII case. A key without a value is absent from the request, which is not
// the same as a key with an empty text.
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

  // The values of `name`; empty when the request does not have the key.
  std::span<const std::string> find(std::string_view name) const;
  // The same for a name that is in lower case already.
  std::span<const std::string> find_lower(std::string_view name) const;

 private:
  struct Entry {
    std::string name;  // in lower case
    std::vector<std::string> values;
  };
  std::vector<Entry> entries_;  // some twenty keys: a scan is faster than a tree
};

}  // namespace trainyard::policy
