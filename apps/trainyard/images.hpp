// Which images there are: those of the config, those that a name spells out itself (oci:PATH:TAG,
// containers-storage:NAME), and two that are always there:
//
//   trainyard/machine   this machine's own system as a runtime
//   trainyard/trainer   the same, with our built-in trainers; their entrypoint is trainyard-trainer
//
// Threads: immutable after construction. Errors: invalid, naming the images that there are.
#pragma once

#include <map>
#include <string>

#include "base/result.hpp"
#include "domain/image.hpp"

namespace trainyard::apps {

// "oci:PATH:TAG" or "containers-storage:NAME". Errors: invalid.
Result<domain::Image> parse_image_source(const std::string& source);

class Images {
 public:
  // `program_directory`: where trainyard-trainer lies.
  Images(std::map<std::string, domain::Image> configured, const std::string& program_directory);
  Result<domain::Image> find(const std::string& name) const;

 private:
  std::map<std::string, domain::Image> images_;
};

}  // namespace trainyard::apps
