#include "agent/init_container.hpp"

#include <algorithm>

#include "contract/container_init.hpp"
#include "contract/entry.hpp"
#include "os/files.hpp"
#include "os/packet_socket.hpp"

namespace trainyard::agent {
namespace {

// The time limit for the init's report, which arrives at once unless the machine swaps.
constexpr Duration kReportMax = 60s;

constexpr std::string_view kInits[] = {"catatonit", "docker-init", "dumb-init",
                                       "init",      "systemd",     "tini"};

}  // namespace

bool is_init(const std::string& program) {
  if (program == contract::kEntryInside) return true;
  const std::string_view name = std::string_view(program).substr(program.rfind('/') + 1);
  return std::ranges::find(kInits, name) != std::end(kInits);
}

Result<std::unique_ptr<containers::Container>> start_with_init(const StartContainer& start,
                                                               containers::ContainerSpec spec,
                                                               int output,
                                                               const std::string& entry_program) {
  os::File writing(output);
  if (entry_program.empty())
    return internal("starting the container's init: trainyard-entry not found next to the agent");
  spec.arguments.insert(spec.arguments.begin(),
                        {std::string(contract::kEntryInside), std::string(contract::kEntryInit)});
  const bool mounted = std::ranges::any_of(spec.mounts, [](const containers::Mount& mount) {
    return mount.destination == contract::kEntryInside;
  });
  if (!mounted) {
    containers::Mount entry;
    entry.source = entry_program;
    entry.destination = std::string(contract::kEntryInside);
    spec.mounts.push_back(std::move(entry));
  }
  auto pair = TRY(os::PacketSocket::pair());
  spec.input = pair.second.descriptor();
  auto container = TRY(start(spec, writing.release()));
  pair.second.close();  // so that receiving ends when the init ends
  const auto packet = pair.first.receive(kReportMax);
  if (!packet || !*packet)
    return unavailable("starting the program: the container's init " +
                       std::string(packet ? "does not answer" : "has ended"));
  const auto report = TRY(contract::decode_init_report((*packet)->bytes));
  if (const auto* failed = std::get_if<contract::NotStarted>(&report))
    return not_found(failed->reason);
  if (!std::holds_alternative<contract::Started>(report))
    return corrupt("starting the program: unexpected report of the container's init");
  return container;
}

}  // namespace trainyard::agent
