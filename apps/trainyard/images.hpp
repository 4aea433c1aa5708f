// The images that are there without a line in the config:
//
//   trainyard/machine   this machine's own system as a runtime
//   trainyard/trainer   the same, with our built-in trainers; their entrypoint is trainyard-trainer
#pragma once

#include <map>
#include <string>

#include "domain/image.hpp"

namespace trainyard::apps {

// `configured` and the built-in ones; the config wins where names meet. `program_directory`: where
// trainyard-trainer lies.
std::map<std::string, domain::Image> all_images(std::map<std::string, domain::Image> configured,
                                                const std::string& program_directory);

}  // namespace trainyard::apps
