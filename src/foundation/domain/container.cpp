#include "domain/container.hpp"

#include <algorithm>

#include "base/enum_table.hpp"
#include "base/json_record.hpp"

namespace trainyard::domain {
namespace {

constexpr std::string_view kLimits[] = {
    "as",   "core",   "cpu",   "data", "fsize",  "locks",  "memlock",    "msgqueue",
    "nice", "nofile", "nproc", "rss",  "rtprio", "rttime", "sigpending", "stack"};
constexpr EnumTable<VolumeKind> kKinds{
    "kind of volume",
    {{VolumeKind::shared, "shared"}, {VolumeKind::own, "own"}, {VolumeKind::memory, "memory"}}};

constexpr auto kVolume = json_record<Volume>("volume", [](auto& side, auto& volume) {
  side("kind", volume.kind, kKinds);
  side.if_set("name", volume.name);
  side.if_set("path", volume.path);
  side("destination", volume.destination);
  side.if_set("read_only", volume.read_only);
  side.if_set("bytes", volume.bytes);
});

constexpr auto kLimit = json_record<ProcessLimit>("limit", [](auto& side, auto& limit) {
  side("name", limit.name);
  side("soft", limit.soft);
  side("hard", limit.hard);
});

constexpr auto kContainerOptions =
    json_record<ContainerOptions>("fittings", [](auto& side, auto& options) {
      side.if_set("volumes", options.volumes, kVolume);
      side.if_set("limits", options.limits, kLimit);
      side.if_set("devices", options.devices);
      side.if_set("shared_memory_bytes", options.shared_memory_bytes);
      side.if_set("user", options.user);
      side.if_set("read_only_root", options.read_only_root);
      side.if_set("init", options.init);
      side.if_set("log_group", options.log_group);
      side.if_set("log_prefix", options.log_prefix);
    });

constexpr auto kProgram = json_record<Program>("program", [](auto& side, auto& program) {
  side("image", program.image);
  side("arguments", program.arguments);
  side("environment", program.environment);
});

}  // namespace

bool is_process_limit(std::string_view name) {
  return std::ranges::find(kLimits, name) != std::end(kLimits);
}

Json to_json(const ContainerOptions& options) { return kContainerOptions.write(options); }
Json to_json(const Program& program) { return kProgram.write(program); }
Result<ContainerOptions> container_options_from_json(const Json& json) {
  return kContainerOptions.read(json);
}
Result<Program> program_from_json(const Json& json) { return kProgram.read(json); }

}  // namespace trainyard::domain
