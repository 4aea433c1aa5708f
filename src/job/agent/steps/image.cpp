// Prepares the image of a host: pulls and unpacks it. A runtime is the machine's own system and
// needs no preparation.
#include "containers/image.hpp"

#include <algorithm>

#include "agent/image_failure.hpp"
#include "agent/steps.hpp"
#include "contract/contract.hpp"
#include "contract/plain_container.hpp"
#include "os/files.hpp"

namespace trainyard::agent {
namespace {

// The shortest interval between reports of progress: each is a record in the server's ledger.
constexpr Duration kPullReportInterval = 2s;

// Programs that scripts and SageMaker's SDK call. Debian's python3 has no `python`, and the
// torchrun of its python3-torch fails: torch before 2.0 searches the values of a Flag for an empty
// one, which Python 3.11 no longer lists. Programs in /usr/local take precedence.
struct RuntimeProgram {
  const char* name;
  const char* text;
};
constexpr RuntimeProgram kRuntimePrograms[] = {{"python", "#!/bin/sh\nexec python3 \"$@\"\n"},
                                               {"torchrun", R"(#!/usr/bin/python3
import sys
from torch.distributed.elastic.multiprocessing import Std
from torch.distributed.run import main

def from_str(text):
    if ":" not in text:
        return Std(int(text))
    return {int(rank): Std(int(value)) for rank, value in (one.split(":") for one in text.split(","))}

if Std.from_str("0") is None:
    Std.from_str = staticmethod(from_str)
sys.exit(main())
)"}};
constexpr const char* kRuntimeProgramsInside = "/opt/trainyard/programs";
constexpr std::string_view kSystemPrograms = ":/usr/sbin";  // in a PATH

// Adds the programs above. Requires: the image's environment is complete.
Result<void> add_runtime_programs(StepContext& context) {
  const std::string directory = context.path(kPrograms);
  TRY(os::make_directories(directory, 0755));
  for (const auto& program : kRuntimePrograms)
    TRY(os::write_file(directory + "/" + program.name, program.text, 0755));
  containers::Mount mount;
  mount.source = directory;
  mount.destination = kRuntimeProgramsInside;
  context.image.mounts.push_back(std::move(mount));
  std::string& path = context.image.environment["PATH"];
  if (path.empty()) path = contract::kUsualPath;
  path.insert(std::min(path.find(kSystemPrograms), path.size()),
              std::string(":") + kRuntimeProgramsInside);
  // Allows `pip install` as in an image. Distributions reserve the system's packages for their own
  // tools, but a job sees these read-only and installs into its own home.
  context.image.environment.try_emplace("PIP_BREAK_SYSTEM_PACKAGES", "1");
  return {};
}

}  // namespace

std::optional<Failure> ready_image(StepContext& context) {
  const auto& image = context.order.image;
  if (image.kind == domain::Image::Kind::machine) {
    context.image = {};
  } else {
    std::string last_message;
    auto next_report = context.world.clock.monotonic();
    auto unpacked =
        context.world.unpack_image(image, context.path("image"), [&](const std::string& message) {
          if (message != last_message && context.world.clock.monotonic() >= next_report) {
            last_message = message;
            next_report = context.world.clock.monotonic() + kPullReportInterval;
            wire::StateFact fact;
            fact.state = domain::HostState::downloading;
            fact.message = message;
            context.world.facts.state(std::move(fact));
          }
          return !context.interruption.ordered();
        });
    if (!unpacked) {
      context.world.facts.say("pulling " + context.order.spec.image + ": " +
                              unpacked.error().message);
      return named(context, contract::kCannotPull,
                   image_failure(image, context.order.spec.image, unpacked.error()));
    }
    context.image = std::move(*unpacked);
  }
  if (const std::string& user = context.container_options().user; !user.empty()) {
    const auto ids = containers::user_of(context.image.root, user);
    if (!ids)
      return named(context, contract::kCannotStart,
                   failure_of(ids.error(), "The container cannot run as the user '" + user + "'"));
    context.image.user_id = ids->user;
    context.image.group_id = ids->group;
  }
  if (!image.entrypoint.empty()) context.image.entrypoint = image.entrypoint;
  for (const auto& [name, value] : image.environment) context.image.environment[name] = value;
  if (image.kind == domain::Image::Kind::machine)
    if (auto added = add_runtime_programs(context); !added)
      return failure_of(added.error(), "preparing the runtime");
  for (const auto& [inside, outside] : image.mounts) {
    containers::Mount mount;
    mount.source = outside;
    mount.destination = inside;
    context.image.mounts.push_back(std::move(mount));
  }
  return {};
}

}  // namespace trainyard::agent
