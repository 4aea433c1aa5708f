#include "domain/container.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "domain/json_fields.hpp"

namespace trainyard::domain {
namespace {

constexpr std::string_view kLimits[] = {"as",      "core",     "cpu",        "data",   "fsize", "locks",
                                        "memlock", "msgqueue", "nice",       "nofile", "nproc", "rss",
                                        "rtprio",  "rttime",   "sigpending", "stack"};
constexpr std::string_view kKinds[] = {"shared", "own", "memory"};  // in the order of VolumeKind

Result<VolumeKind> parse_volume_kind(std::string_view text) {
  const auto found = std::ranges::find(kKinds, text);
  if (found == std::end(kKinds)) return invalid("'" + shorten(text, 60) + "' is not a kind of volume");
  return VolumeKind(found - std::begin(kKinds));
}

Json to_json(const Volume& volume) {
  Json json{{"kind", kKinds[size_t(volume.kind)]}, {"destination", volume.destination}};
  if (!volume.name.empty()) json["name"] = volume.name;
  if (!volume.path.empty()) json["path"] = volume.path;
  if (volume.read_only) json["read_only"] = true;
  if (volume.bytes != 0) json["bytes"] = volume.bytes;
  return json;
}

Result<Volume> volume_from_json(const Json& json) {
  Volume volume;
  TRY(Fields(json, "volume")
          .read("kind", volume.kind, parse_volume_kind)
          .read("name", volume.name)
          .read("path", volume.path)
          .read("destination", volume.destination)
          .read("read_only", volume.read_only)
          .read("bytes", volume.bytes)
          .result());
  return volume;
}

Json to_json(const ProcessLimit& limit) {
  return {{"name", limit.name}, {"soft", limit.soft}, {"hard", limit.hard}};
}

Result<ProcessLimit> limit_from_json(const Json& json) {
  ProcessLimit limit;
  TRY(Fields(json, "limit")
          .read("name", limit.name)
          .read("soft", limit.soft)
          .read("hard", limit.hard)
          .result());
  return limit;
}

template <class T>
void put_list(Json& json, const char* name, const std::vector<T>& values) {
  if (values.empty()) return;
  json[name] = Json::array();
  for (const T& value : values) json[name].push_back(to_json(value));
}

}  // namespace

bool is_process_limit(std::string_view name) { return std::ranges::find(kLimits, name) != std::end(kLimits); }

Json to_json(const ContainerOptions& container_options) {
  Json json = Json::object();
  put_list(json, "volumes", container_options.volumes);
  put_list(json, "limits", container_options.limits);
  if (!container_options.devices.empty()) json["devices"] = container_options.devices;
  if (container_options.shared_memory_bytes)
    json["shared_memory_bytes"] = *container_options.shared_memory_bytes;
  if (!container_options.user.empty()) json["user"] = container_options.user;
  if (container_options.read_only_root) json["read_only_root"] = true;
  if (container_options.init) json["init"] = true;
  if (!container_options.log_group.empty()) json["log_group"] = container_options.log_group;
  if (!container_options.log_prefix.empty()) json["log_prefix"] = container_options.log_prefix;
  return json;
}

Json to_json(const Program& program) {
  return {{"image", program.image}, {"arguments", program.arguments}, {"environment", program.environment}};
}

Result<ContainerOptions> container_options_from_json(const Json& json) {
  ContainerOptions container_options;
  TRY(Fields(json, "fittings")
          .read("volumes", container_options.volumes, volume_from_json)
          .read("limits", container_options.limits, limit_from_json)
          .read("devices", container_options.devices)
          .read("shared_memory_bytes", container_options.shared_memory_bytes)
          .read("user", container_options.user)
          .read("read_only_root", container_options.read_only_root)
          .read("init", container_options.init)
          .read("log_group", container_options.log_group)
          .read("log_prefix", container_options.log_prefix)
          .result());
  return container_options;
}

Result<Program> program_from_json(const Json& json) {
  Program program;
  TRY(Fields(json, "program")
          .read("image", program.image)
          .read("arguments", program.arguments)
          .read("environment", program.environment)
          .result());
  return program;
}

}  // namespace trainyard::domain
