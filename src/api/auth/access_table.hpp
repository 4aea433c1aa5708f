// AccessTable finds the actions that a request needs permission for, the resource of each, and the
// values of the service's condition keys.
//
// One table (access_table.cpp) has a line for each operation of this server; a test compares it
// with operations.txt. A resource is a template whose placeholders are members of the decoded
// input:
//
//   {region} {account}  the region and the account of the request
//   {Member}            the text of a member
//   {Member.Inner}      a member of a structure; {Members[].Inner} and {Members[]}: one resource
//                       for each element
//   {Member=kind}       the ARN of the Batch resource of that kind whose name or ARN is the member
//
// A line whose member is absent from the input is left out. A member followed by '?' is empty
// instead.
//
// Threads: immutable after construction. Errors: none.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "operations/context.hpp"
#include "shapes/shape.hpp"

namespace trainyard::api {

struct Access {
  std::string action;    // "s3:GetObject"
  std::string resource;  // ARN, or "*"
};

// Condition keys ("s3:prefix") and their values.
using ServiceValues = std::vector<std::pair<std::string, std::vector<std::string>>>;

struct PassedRole {
  std::string arn;
  std::string_view service;  // "sagemaker.amazonaws.com"
};

struct Accesses {
  std::vector<Access> all;
  ServiceValues values;
  std::vector<PassedRole> roles;  // the roles that a job of this request runs as
  // S3 locations that a job of this request reads and writes: "bucket/prefix*", where '*' matches
  // any text.
  std::vector<std::string> reads, writes;
  // The ids of Lustre file systems that channels of a job of this request name.
  std::vector<std::string> file_systems;
};

// A condition key of this server for PutMetricData and GetMetricStatistics: the TrainingJobName
// dimension of each metric, or "-" for a metric without one.
inline constexpr std::string_view kMetricJobKey = "trainyard:MetricJob";

class AccessTable {
 public:
  AccessTable();
  // Returns the only table of the program.
  static const AccessTable& shared();

  // Returns whether the table has the operation.
  bool has(const shapes::OperationShape& operation) const;
  // Returns whether a line of the operation reads members from the body of an S3 request.
  static bool needs_body(const shapes::OperationShape& operation);
  // Finds what the operation accesses with `input`, a structure of its input. Requires:
  // has(operation).
  Accesses find(const Context& context, const shapes::OperationShape& operation,
                const void* input) const;

 private:
  struct Line {
    std::string_view action, resource;
  };
  using Key = std::pair<std::string_view, std::string_view>;  // service and operation
  struct KeyHash {
    size_t operator()(const Key& key) const {
      const std::hash<std::string_view> hash;
      return hash(key.first) * 31 + hash(key.second);
    }
  };
  const std::vector<Line>* lines_of(const shapes::OperationShape& operation) const;

  std::unordered_map<Key, std::vector<Line>, KeyHash> lines_;
};

}  // namespace trainyard::api
