#include "cluster_setup/machine_facts.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "base/sha256.hpp"
#include "base/text.hpp"
#include "cluster_setup/names.hpp"
#include "cluster_setup/scripts.hpp"

namespace trainyard::cluster_setup {
namespace {

constexpr size_t kLineBytesShown = 120;
constexpr size_t kAddressesMax = 64;
constexpr size_t kTypeBytesMax = 64;

Error unexpected(std::string_view line) {
  return corrupt("unexpected line '" + to_utf8(shorten(line, kLineBytesShown)) +
                 "' in the inspection of a machine");
}

std::optional<int64_t> number_within(std::string_view text, int64_t least, int64_t most) {
  const auto number = parse_int(text);
  return number && *number >= least && *number <= most ? std::optional(*number) : std::nullopt;
}

// A version of Debian's: letters, digits and . + - : ~
bool is_version(std::string_view text) {
  return !text.empty() && text.size() <= 128 && std::all_of(text.begin(), text.end(), [](char c) {
    return std::string_view(".+-:~").find(c) != std::string_view::npos || (c >= '0' && c <= '9') ||
           (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  });
}

// Collects the facts of one inspection, line by line.
class FactReader {
 public:
  Result<void> add(std::string_view line);
  Result<MachineFacts> take();

 private:
  bool add_hardware(std::string_view name, const std::vector<std::string_view>& words,
                    std::string_view rest);
  bool add_address(std::string_view name, const std::vector<std::string_view>& words);
  bool add_software(std::string_view name, const std::vector<std::string_view>& words);
  bool add_membership(std::string_view name, const std::vector<std::string_view>& words);
  bool add_record(std::string_view text);

  MachineFacts facts_;
  std::map<int64_t, std::string> types_;  // types of GPUs by minor number
  std::set<int64_t> device_files_;
};

bool FactReader::add_hardware(std::string_view name, const std::vector<std::string_view>& words,
                              std::string_view rest) {
  if (name == "cpus" && words.size() == 1) {
    const auto cpus = number_within(words[0], 1, kCpusMax);
    facts_.cpus = cpus.value_or(0);
    return cpus.has_value();
  }
  if (name == "memory_kib" && words.size() == 1) {
    const auto kib = number_within(words[0], 1024, kMemoryMibMax * 1024);
    facts_.memory_mib = kib.value_or(0) / 1024;
    return kib.has_value();
  }
  if (name == "gpu" && !words.empty()) {
    const auto minor = number_within(words[0], 0, kGpusMax - 1);
    if (minor) types_[*minor] = gpu_type_of(rest.substr(words[0].size()));
    return minor.has_value();
  }
  if (name == "gpu_file" && words.size() == 1) {
    const auto minor = number_within(words[0], 0, kGpusMax - 1);
    if (minor) device_files_.insert(*minor);
    return minor.has_value();
  }
  if (name == "seconds" && words.size() == 1) {
    const auto seconds = number_within(words[0], 0, int64_t(1) << 40);
    facts_.seconds = seconds.value_or(0);
    return seconds.has_value();
  }
  return false;
}

bool FactReader::add_address(std::string_view name, const std::vector<std::string_view>& words) {
  if (name == "address" && words.size() == 1 && is_ipv4(words[0])) {
    auto& all = facts_.addresses;
    if (std::find(all.begin(), all.end(), words[0]) == all.end()) all.emplace_back(words[0]);
    return all.size() <= kAddressesMax;
  }
  // Either end may be an IPv6 address, which is not used.
  if (name == "reached" && words.size() == 2) {
    if (!is_ipv4(words[0]) || !is_ipv4(words[1])) return true;
    facts_.reached_at = words[0], facts_.reached_from = words[1];
    return true;
  }
  return false;
}

bool FactReader::add_software(std::string_view name, const std::vector<std::string_view>& words) {
  if (name == "hostname" && words.size() == 1 && is_plain_name(words[0])) {
    facts_.hostname = words[0];
    return true;
  }
  if (name == "system" && words.size() == 2 && is_plain_name(words[0]) && is_version(words[1])) {
    facts_.system = std::string(words[0]) + " " + std::string(words[1]);
    return true;
  }
  if (name == "systemd" && words.empty()) return facts_.systemd = true;
  if (name == "package" && words.size() == 2 && is_plain_name(words[0]) && is_version(words[1])) {
    facts_.packages[std::string(words[0])] = words[1];
    return true;
  }
  if (name == "file" && words.size() == 2 && is_hex_digest(words[0]) && is_plain_path(words[1])) {
    facts_.files[std::string(words[1])] = words[0];
    return true;
  }
  if (name == "written" && words.size() == 3 && is_hex_digest(words[0]) &&
      is_plain_path(words[2]) && (words[1] == "-" || is_hex_digest(words[1]))) {
    facts_.written[std::string(words[2])] = {
        std::string(words[0]), words[1] == "-" ? std::string() : std::string(words[1])};
    return true;
  }
  if (name == "service" && words.size() == 2 && std::ranges::count(all_services(), words[0]) > 0) {
    facts_.services[std::string(words[0])] =
        words[1] == "running" ? ServiceState::running : ServiceState::stopped;
    return words[1] == "running" || words[1] == "stopped";
  }
  if (name == "pending" && words.size() == 1 && std::ranges::count(all_services(), words[0]) > 0) {
    facts_.pending.emplace_back(words[0]);
    return true;
  }
  return false;
}

bool FactReader::add_membership(std::string_view name, const std::vector<std::string_view>& words) {
  if (name == "member" && words.size() == 2 && is_plain_name(words[0]) && is_plain_name(words[1])) {
    facts_.member = std::string(words[0]) + " " + std::string(words[1]);
    return true;
  }
  return false;
}

bool FactReader::add_record(std::string_view text) {
  auto record = from_base64(text);
  if (!record) return false;
  facts_.record = *std::move(record);
  return true;
}

Result<void> FactReader::add(std::string_view line) {
  const size_t blank = line.find(' ');
  const std::string_view name = line.substr(0, blank);
  const std::string_view rest =
      blank == std::string_view::npos ? std::string_view() : line.substr(blank + 1);
  if (name == "record") return add_record(rest) ? ok() : Result<void>(unexpected(line));
  std::vector<std::string_view> words;
  for (const std::string_view word : split(rest, ' '))
    if (!word.empty()) words.push_back(word);
  if (add_hardware(name, words, rest) || add_address(name, words) || add_software(name, words) ||
      add_membership(name, words))
    return {};
  return unexpected(line);
}

Result<MachineFacts> FactReader::take() {
  for (const auto& [name, missing] :
       {std::pair("hostname", facts_.hostname.empty()), std::pair("system", facts_.system.empty()),
        std::pair("cpus", facts_.cpus == 0), std::pair("memory_kib", facts_.memory_mib == 0),
        std::pair("seconds", facts_.seconds == 0)})
    if (missing) return corrupt(std::string("missing line '") + name + "' in the inspection");
  for (const int64_t minor : device_files_) {
    const auto type = types_.find(minor);
    facts_.gpus.push_back({minor, type == types_.end() ? std::string() : type->second});
  }
  return std::move(facts_);
}

}  // namespace

std::string gpu_type_of(std::string_view model) {
  std::string type;
  for (const char c : to_lower(trim(model))) {
    const bool kept = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
    if (kept || type.empty() || type.back() != '_') type += kept ? c : '_';
  }
  while (!type.empty() && type.back() == '_') type.pop_back();
  while (!type.empty() && !(type.front() >= 'a' && type.front() <= 'z')) type.erase(0, 1);
  return type.substr(0, kTypeBytesMax);
}

Result<MachineFacts> read_machine_facts(std::string_view output) {
  if (output.size() > kInspectionBytesMax)
    return exhausted("the inspection printed more than " + human_bytes(kInspectionBytesMax));
  FactReader reader;
  bool begun = false;
  size_t count = 0;
  for (const std::string_view line : split(output, '\n')) {
    if (!begun) {
      begun = line == kInspectionBegin;
      continue;
    }
    if (line == kInspectionEnd) return reader.take();
    if (++count > kFactsMax)
      return exhausted("the inspection has more than " + std::to_string(kFactsMax) + " lines");
    TRY(reader.add(line));
  }
  return corrupt(begun ? "the inspection ends before its last line"
                       : "the inspection printed nothing that can be read; its first line is '" +
                             to_utf8(shorten(output.substr(0, output.find('\n')), 80)) + "'");
}

}  // namespace trainyard::cluster_setup
