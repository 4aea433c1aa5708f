// Reads the contract's files, which a job may have written.
#include <algorithm>

#include "base/text.hpp"
#include "contract/contract.hpp"

namespace trainyard::contract {
namespace {

// limit of files below /opt/ml/input/config, which are small documents
constexpr size_t kDocumentBytesMax = 8 << 20;

Result<Json> read_object(std::string_view json, std::string_view file) {
  if (json.size() > kDocumentBytesMax) {
    return invalid(std::string(file) + ": more than " + human_bytes(kDocumentBytesMax));
  }
  auto document = TRY(parse_json(json).in(file));
  if (!document.is_object()) return invalid(std::string(file) + ": must be a JSON object");
  return document;
}

}  // namespace

Result<Resources> read_resources(std::string_view json) {
  constexpr std::string_view file = "resourceconfig.json";
  const auto document = TRY(read_object(json, file));
  Resources resources;
  resources.current_host = TRY(string_at(document, "current_host").in(file));
  const auto hosts = document.find("hosts");
  if (hosts == document.end() || !hosts->is_array())
    return invalid("resourceconfig.json: hosts must be an array of names");
  for (const auto& name : *hosts) {
    if (!name.is_string()) return invalid("resourceconfig.json: hosts must be an array of names");
    resources.hosts.push_back(name.get<std::string>());
  }
  if (std::find(resources.hosts.begin(), resources.hosts.end(), resources.current_host) ==
      resources.hosts.end()) {
    return invalid("resourceconfig.json: current_host '" + shorten(resources.current_host, 64) +
                   "' is not one of hosts");
  }
  resources.network_interface = TRY(string_at(document, "network_interface_name").in(file));
  return resources;
}

Result<std::map<std::string, std::string>> read_hyperparameters(std::string_view json) {
  constexpr std::string_view file = "hyperparameters.json";
  const auto document = TRY(read_object(json, file));
  std::map<std::string, std::string> values;
  for (const auto& [name, value] : document.items()) {
    if (!value.is_string())
      return invalid("hyperparameters.json: " + shorten(name, 64) + " must be a string");
    values[name] = value.get<std::string>();
  }
  return values;
}

Result<std::vector<ChannelConfig>> read_channels(std::string_view json) {
  constexpr std::string_view file = "inputdataconfig.json";
  const auto document = TRY(read_object(json, file));
  std::vector<ChannelConfig> channels;
  for (const auto& [name, entry] : document.items()) {
    const std::string where = "inputdataconfig.json: " + shorten(name, 64);
    if (!entry.is_object()) return invalid(where + " must be an object");
    ChannelConfig channel;
    channel.name = name;
    channel.input_mode = TRY(string_at(entry, "TrainingInputMode").in(where));
    channel.distribution = TRY(string_at(entry, "S3DistributionType").in(where));
    if (entry.contains("ContentType"))
      channel.content_type = TRY(string_at(entry, "ContentType").in(where));
    if (entry.contains("RecordWrapperType"))
      channel.record_wrapper = TRY(string_at(entry, "RecordWrapperType").in(where));
    channels.push_back(std::move(channel));
  }
  return channels;
}

std::string failure_text(std::string_view file) {
  const auto text = to_utf8(trim(file));
  size_t characters = 0, end = 0;
  while (end < text.size()) {
    const bool begins_character = (static_cast<unsigned char>(text[end]) & 0xC0) != 0x80;
    if (begins_character && ++characters > kFailureCharactersMax) break;
    ++end;
  }
  return text.substr(0, end);
}

}  // namespace trainyard::contract
