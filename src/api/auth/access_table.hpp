// Finds the actions that a request needs, the resource of each, and the values of the service's condition keys.
//
// One table (access_table.cpp) has a line for each operation of this server; a test compares it with operations.txt. A
// resource is a template whose placeholders are members of the decoded input:
//
//   {region} {account}  of the request
//   {Member}            its text
//   {Member.Inner}      of a structure; {Members[].Inner} and {Members[]}: one resource for each element
//   {Member=kind}       a Batch name or ARN: the ARN of the resource of that kind
//
// A line whose member is absent from the input is left out, unless the member is followed by '?': then it is empty.
//
// Threads: immutable after construction. Errors: none.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "operations/context.hpp"
#include "shapes/shape.hpp"

namespace trainyard::api {

struct Access {
  std::string action;    // "s3:GetObject"
  std::string resource;  // ARN, or "*"
};

// "s3:prefix" -> its values
using ServiceValues = std::vector<std::pair<std::string, std::vector<std::string>>>;

struct PassedRole {
  std::string arn;
  std::string_view service;  // "sagemaker.amazonaws.com"
};

struct Accesses {
  std::vector<Access> all;
  ServiceValues values;
  std::vector<PassedRole> roles;  // that a job of this request would run as
  // S3 places that a job of this request would read and write: "bucket/prefix*", patterns of literals and '*'.
  std::vector<std::string> reads, writes;
};

// The condition key of PutMetricData and GetMetricStatistics that this server adds: the TrainingJobName dimension of each
// metric, "-" where a metric has none.
inline constexpr std::string_view kMetricJobKey = "trainyard:MetricJob";

class AccessTable {
 public:
  AccessTable();

  // Whether the operation has a line.
  bool knows(const shapes::OperationShape& operation) const;
  // Whether a line of the operation reads members that are in the body of an S3 request.
  static bool needs_body(const shapes::OperationShape& operation);
  // Requires: knows(operation).
  Accesses find(const Context& context, const shapes::OperationShape& operation, const void* input) const;

 private:
  struct Line {
    std::string_view action, resource;
  };
  std::multimap<std::string, Line, std::less<>> lines_;  // by "service Operation"
};

// The text of a member, "" when it is absent: for what is special about one operation.
std::string member_text(const shapes::Shape& shape, const void* structure, std::string_view path);

}  // namespace trainyard::api
