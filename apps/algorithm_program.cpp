#include "algorithm_program.hpp"

#include <unistd.h>

#include <cstdio>

#include "os/environment.hpp"
#include "os/files.hpp"

namespace trainyard::apps {

std::string Arguments::option(const std::string& name, const std::string& otherwise) const {
  const auto found = options.find(name);
  return found == options.end() ? otherwise : found->second;
}

Result<Arguments> parse_arguments(const std::vector<std::string>& arguments,
                                  const std::set<std::string>& flags,
                                  const std::set<std::string>& options) {
  Arguments parsed;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (flags.contains(argument)) {
      parsed.flags.insert(argument);
    } else if (options.contains(argument)) {
      if (i + 1 == arguments.size()) return invalid(argument + " needs a value");
      parsed.options[argument] = arguments[++i];
    } else if (argument.starts_with("--")) {
      return invalid("unknown option " + argument);
    } else {
      parsed.others.push_back(argument);
    }
  }
  return parsed;
}

Result<std::string> read_request(const std::string& path, size_t bytes_max) {
  if (path != "-") return os::read_file(path, bytes_max);
  std::string request;
  char piece[1 << 16];
  while (const size_t count = std::fread(piece, 1, sizeof piece, stdin)) {
    request.append(piece, count);
    if (request.size() > bytes_max)
      return exhausted("the request exceeds " + std::to_string(bytes_max) + " bytes");
  }
  return request;
}

std::string shared_value_of_job() {
  const std::string arn = os::environment_variable("TRAINING_JOB_ARN");
  return arn.empty() ? os::environment_variable("TRAINING_JOB_NAME") : arn;
}

uint64_t memory_of_machine() {
  const long pages = ::sysconf(_SC_PHYS_PAGES), bytes = ::sysconf(_SC_PAGESIZE);
  return pages > 0 && bytes > 0 ? uint64_t(pages) * uint64_t(bytes) : 0;
}

}  // namespace trainyard::apps
