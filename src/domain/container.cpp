#include "domain/container.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "domain/json_fields.hpp"

namespace trainyard::domain {
namespace {

constexpr std::string_view kLimits[] = {"as",      "core",     "cpu",        "data",   "fsize", "locks",
                                        "memlock", "msgqueue", "nice",       "nofile", "nproc", "rss",
                                        "rtprio",  "rttime",   "sigpending", "stack"};
constexpr std::string_view kKinds[] = {"shared", "own", "memory"};  // as VolumeKind

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

Json to_json(const Fittings& fittings) {
  Json json = Json::object();
  put_list(json, "volumes", fittings.volumes);
  put_list(json, "limits", fittings.limits);
  if (!fittings.devices.empty()) json["devices"] = fittings.devices;
  if (fittings.shared_memory_bytes) json["shared_memory_bytes"] = *fittings.shared_memory_bytes;
  if (!fittings.user.empty()) json["user"] = fittings.user;
  if (fittings.read_only_root) json["read_only_root"] = true;
  if (fittings.init) json["init"] = true;
  if (!fittings.log_group.empty()) json["log_group"] = fittings.log_group;
  if (!fittings.log_prefix.empty()) json["log_prefix"] = fittings.log_prefix;
  return json;
}

Json to_json(const Program& program) {
  return {{"image", program.image}, {"arguments", program.arguments}, {"environment", program.environment}};
}

Result<Fittings> fittings_from_json(const Json& json) {
  Fittings fittings;
  TRY(Fields(json, "fittings")
          .read("volumes", fittings.volumes, volume_from_json)
          .read("limits", fittings.limits, limit_from_json)
          .read("devices", fittings.devices)
          .read("shared_memory_bytes", fittings.shared_memory_bytes)
          .read("user", fittings.user)
          .read("read_only_root", fittings.read_only_root)
          .read("init", fittings.init)
          .read("log_group", fittings.log_group)
          .read("log_prefix", fittings.log_prefix)
          .result());
  return fittings;
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
