// Checks the body of a dashboard, as CloudWatch does: a JSON object with widgets, each with a known
// type, a position in the grid and properties.
//
// Threads: pure functions. Errors: none; the result has the faults.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trainyard::api::cloudwatch {

inline constexpr size_t kWidgetsMax = 500;  // as on AWS
inline constexpr size_t kFaultsMax = 20;    // further faults are not listed

struct BodyFault {
  std::string path;  // "/widgets/0/type"
  std::string message;
};

struct BodyCheck {
  std::vector<BodyFault> errors;    // not empty: the body is rejected
  std::vector<BodyFault> warnings;  // of a body that is stored, but may not be shown as intended
};

BodyCheck check_body(std::string_view body);

}  // namespace trainyard::api::cloudwatch
