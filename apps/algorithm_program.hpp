// Has what the programs of algorithms share: their arguments, requests, and facts of their host.
//
// Threads: confined to one. Errors: invalid, with the argument; those of reading a file.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace trainyard::apps {

struct Arguments {
  std::set<std::string> flags;                 // with the dashes
  std::map<std::string, std::string> options;  // likewise
  std::vector<std::string> others;

  // Returns the value of an option, or `otherwise`.
  std::string option(const std::string& name, const std::string& otherwise) const;
};

// Reads arguments in any order. `options` have a value each, and `flags` have none.
Result<Arguments> parse_arguments(const std::vector<std::string>& arguments,
                                  const std::set<std::string>& flags,
                                  const std::set<std::string>& options);

// Reads a file, or the standard input for "-".
Result<std::string> read_request(const std::string& path, size_t bytes_max);

// Returns what all hosts of the job know alike and other jobs do not: its ARN, or its name.
std::string shared_value_of_job();
// Returns the memory of the machine in bytes; 0: unknown.
uint64_t memory_of_machine();

}  // namespace trainyard::apps
