#include "trainyard/images.hpp"

#include "host/files.hpp"

namespace trainyard::apps {
namespace {

constexpr const char* kTrainerInside = "/opt/trainyard/bin/trainyard-trainer";

}  // namespace

std::map<std::string, domain::Image> all_images(std::map<std::string, domain::Image> configured,
                                                const std::string& program_directory) {
  configured.try_emplace("trainyard/machine");
  const std::string program = program_directory + "/trainyard-trainer";
  if (host::exists(program)) {
    domain::Image trainer;
    trainer.mounts[kTrainerInside] = program;
    trainer.entrypoint = {kTrainerInside};
    configured.try_emplace("trainyard/trainer", trainer);
  }
  return configured;
}

}  // namespace trainyard::apps
