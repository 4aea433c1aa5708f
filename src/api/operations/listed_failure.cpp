#include "operations/listed_failure.hpp"

#include <algorithm>
#include <string_view>

namespace trainyard::api {

std::string listed_failure(const std::string& reason) {
  constexpr std::string_view kOfJob = "AlgorithmError: ", kExitCode = ", exit code: ";
  constexpr std::string_view kNotStarted = "The container cannot be started: ";
  if (const size_t at = reason.find(kNotStarted); at != std::string::npos)
    return reason.substr(0, at + kNotStarted.size() - 2);
  const size_t at = reason.find(kOfJob);
  if (at == std::string::npos) return reason;
  std::string out = reason.substr(0, at + kOfJob.size() - 2);
  const size_t code = reason.rfind(kExitCode);
  if (code == std::string::npos || code < at) return out;
  const size_t digits = code + kExitCode.size();
  const size_t end = std::min(reason.find_first_not_of("0123456789", digits), reason.size());
  return end == digits ? out : out + reason.substr(code, end - code);
}

}  // namespace trainyard::api
