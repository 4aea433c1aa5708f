#include "launch/slurm/answers.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "base/text.hpp"
#include "launch/slurm/components.hpp"
#include "launch/slurm/job_comment.hpp"
#include "launch/slurm/slurm_states.hpp"

namespace trainyard::launch {
namespace {

constexpr size_t kShownBytes = 120;  // of a line in an error message
constexpr size_t kJobFields = 10;
constexpr size_t kEndedFields = 4;

// The keys of scontrol's node lines that follow a value with blanks, or are read. A value ends
// where the next of them begins.
constexpr std::array kNodeKeys = {"NodeName",
                                  "Arch",
                                  "CoresPerSocket",
                                  "CPUAlloc",
                                  "CPUEfctv",
                                  "CPUTot",
                                  "CPULoad",
                                  "AvailableFeatures",
                                  "ActiveFeatures",
                                  "Gres",
                                  "NodeAddr",
                                  "NodeHostName",
                                  "Port",
                                  "Version",
                                  "OS",
                                  "RealMemory",
                                  "AllocMem",
                                  "FreeMem",
                                  "Sockets",
                                  "Boards",
                                  "CoreSpecCount",
                                  "CPUSpecList",
                                  "MemSpecLimit",
                                  "State",
                                  "ThreadsPerCore",
                                  "TmpDisk",
                                  "Weight",
                                  "Owner",
                                  "MCS_label",
                                  "Partitions",
                                  "BootTime",
                                  "SlurmdStartTime",
                                  "LastBusyTime",
                                  "ResumeAfterTime",
                                  "CfgTRES",
                                  "AllocTRES",
                                  "CapWatts",
                                  "CurrentWatts",
                                  "AveWatts",
                                  "ExtSensorsJoules",
                                  "Reason",
                                  "Comment",
                                  "Extra"};

Error unexpected(std::string_view what, std::string_view line) {
  return corrupt("unexpected " + std::string(what) + " '" + shorten(to_utf8(line), kShownBytes) +
                 "'");
}

bool is_set(std::string_view value) { return !value.empty() && value != "(null)"; }

// Returns the start of " KEY=" of the next known key, or the end of the line.
size_t next_key(std::string_view line, size_t from) {
  for (size_t at = line.find(' ', from); at != std::string_view::npos;
       at = line.find(' ', at + 1)) {
    const std::string_view rest = line.substr(at + 1);
    const size_t equals = rest.find('=');
    if (equals == std::string_view::npos) break;
    if (std::ranges::find(kNodeKeys, rest.substr(0, equals)) != kNodeKeys.end()) return at;
  }
  return line.size();
}

std::string_view value_of(std::string_view line, std::string_view key) {
  const std::string marked = std::string(key) + "=";
  size_t at = line.starts_with(marked) ? 0 : line.find(" " + marked);
  if (at == std::string_view::npos) return {};
  at += marked.size() + (at == 0 ? 0 : 1);
  return trim(line.substr(at, next_key(line, at) - at));
}

Result<int64_t> number_of(std::string_view line, std::string_view key) {
  const auto value = value_of(line, key);
  if (!is_set(value)) return 0;
  const auto number = parse_int(value);
  if (!number || *number < 0) return unexpected(key, line);
  return *number;
}

// "IDLE+DRAIN*" has the states IDLE and DRAIN, and does not respond.
void read_states(std::string_view text, SlurmNode& node) {
  for (std::string_view state : split(text, '+')) {
    while (!state.empty() && !(state.back() >= 'A' && state.back() <= 'Z')) {
      if (state.back() == '*') node.responds = false;
      state.remove_suffix(1);
    }
    if (state == "NOT_RESPONDING") node.responds = false;
    if (!state.empty()) node.states.emplace_back(state);
  }
}

int64_t gpus_of_tres(std::string_view tres) {
  int64_t gpus = 0;
  for (const auto part : split(tres, ','))
    if (part.starts_with("gres/gpu="))
      if (const auto number = parse_int(part.substr(9)); number && *number > 0) gpus = *number;
  return gpus;
}

Result<SlurmNode> read_node(std::string_view line) {
  SlurmNode node;
  node.name = value_of(line, "NodeName");
  if (node.name.empty()) return unexpected("node", line);
  node.address = value_of(line, "NodeAddr");
  read_states(value_of(line, "State"), node);
  if (node.states.empty()) return unexpected("node without a state", line);
  if (const auto reason = value_of(line, "Reason"); is_set(reason)) node.reason = reason;
  for (const auto partition : split(value_of(line, "Partitions"), ','))
    if (!partition.empty()) node.partitions.emplace_back(partition);
  if (const auto features = value_of(line, "AvailableFeatures"); is_set(features))
    for (const auto feature : split(features, ',')) node.features.emplace_back(feature);
  node.cpus = TRY(number_of(line, "CPUEfctv"));
  if (node.cpus == 0) node.cpus = TRY(number_of(line, "CPUTot"));
  node.cpus_allocated = TRY(number_of(line, "CPUAlloc"));
  node.memory_mib = std::max<int64_t>(
      0, TRY(number_of(line, "RealMemory")) - TRY(number_of(line, "MemSpecLimit")));
  node.memory_allocated_mib = TRY(number_of(line, "AllocMem"));
  node.gpus = gpus_of_gres(value_of(line, "Gres"));
  node.gpus_allocated = gpus_of_tres(value_of(line, "AllocTRES"));
  return node;
}

// Reads a job's id: "7", or "7+1" for a component. Elements of arrays ("7_1") are not Trainyard's.
std::optional<ListedJob> read_job_id(std::string_view text) {
  ListedJob listed;
  if (const size_t plus = text.find('+'); plus != std::string_view::npos) {
    const auto component = parse_int(text.substr(plus + 1));
    if (!component || *component < 0 || *component >= int64_t(kSlurmComponentsMax)) return {};
    listed.component = size_t(*component);
    text = text.substr(0, plus);
  }
  const auto id = parse_int(text);
  if (!id || *id <= 0) return {};
  listed.job.id = uint64_t(*id);
  return listed;
}

std::optional<ListedJob> read_job(std::string_view line, std::string_view marker,
                                  std::string_view own_user) {
  std::array<std::string_view, kJobFields> fields;
  for (size_t i = 0; i + 1 < kJobFields; ++i) {
    const size_t bar = line.find('|');
    if (bar == std::string_view::npos) return {};
    fields[i] = line.substr(0, bar);
    line.remove_prefix(bar + 1);
  }
  fields.back() = line;
  auto listed = read_job_id(fields[0]);
  if (!listed || fields[1] != marker) return {};
  SlurmJob& job = listed->job;
  job.state = fields[2];
  job.reason = fields[3];
  job.expected_start = fields[4];
  job.nodes = fields[5];
  job.user = fields[6] == own_user ? "" : fields[6];
  job.preempted = !fields[7].empty() && fields[7] != "N/A";
  job.name = fields[8];
  job.comment = fields[9];
  return listed;
}

// Describes how a job ended: "1:0" is an exit code, "0:9" a signal.
std::string describe_exit(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) return "";
  const auto code = parse_int(text.substr(0, colon)), signal = parse_int(text.substr(colon + 1));
  if (!code || !signal || *code < 0 || *signal < 0) return "";
  if (*signal > 0) return "signal " + std::to_string(*signal);
  return *code > 0 ? "exit code " + std::to_string(*code) : "";
}

// Appends the names of one element: prefix[1-3,7] and a suffix after it.
Result<void> expand(std::string_view element, std::vector<std::string>& names) {
  const auto add = [&](std::string name) -> Result<void> {
    if (names.size() >= kSlurmNodesMax)
      return exhausted("a host list of more than " + std::to_string(kSlurmNodesMax) + " names");
    names.push_back(std::move(name));
    return {};
  };
  const size_t open = element.find('[');
  if (open == std::string_view::npos) return add(std::string(element));
  const size_t close = element.find(']', open);
  if (close == std::string_view::npos) return unexpected("host list", element);
  const std::string prefix(element.substr(0, open)), suffix(element.substr(close + 1));
  if (suffix.find('[') != std::string::npos) return unexpected("host list", element);
  for (const auto range : split(element.substr(open + 1, close - open - 1), ',')) {
    const size_t dash = range.find('-');
    const std::string_view low = range.substr(0, dash);
    const std::string_view high = dash == std::string_view::npos ? low : range.substr(dash + 1);
    const auto first = parse_int(low), last = parse_int(high);
    if (!first || !last || *first < 0 || *last < *first) return unexpected("host list", element);
    if (*last - *first >= int64_t(kSlurmNodesMax))
      return exhausted("a host list of more than " + std::to_string(kSlurmNodesMax) + " names");
    for (int64_t number = *first; number <= *last; ++number) {
      std::string digits = std::to_string(number);
      if (digits.size() < low.size()) digits.insert(0, low.size() - digits.size(), '0');
      TRY(add(prefix + digits + suffix));
    }
  }
  return {};
}

}  // namespace

// A field has no width, and ends with the separator.
std::string jobs_format(std::string_view marker) {
  return "JobArrayID:|" + std::string(marker) +
         "|,State:|,Reason:|,StartTime:|,NodeList:|,UserName:|,PreemptTime:|,Name:|,Comment:";
}

Result<std::vector<SlurmJob>> read_jobs(std::string_view squeue, std::string_view marker,
                                        std::string_view own_user) {
  std::vector<ListedJob> listed;
  for (const auto line : split(squeue, '\n')) {
    auto each = read_job(line, marker, own_user);
    if (!each || !is_job_comment(each->job.comment)) continue;
    if (listed.size() >= kSlurmJobsMax)
      return exhausted("Slurm lists more than " + std::to_string(kSlurmJobsMax) + " jobs");
    listed.push_back(*std::move(each));
  }
  return join_components(std::move(listed));
}

Result<std::vector<SlurmJob>> read_ended(std::string_view sacct, std::string_view own_user) {
  std::vector<SlurmJob> jobs;
  for (const auto line : split(sacct, '\n')) {
    if (trim(line).empty()) continue;
    const auto fields = split(line, '|');
    const auto id = parse_int(fields[0]);
    if (fields.size() != kEndedFields || !id || *id <= 0) return unexpected("line of sacct", line);
    SlurmJob job;
    job.id = uint64_t(*id);
    job.user = fields[1] == own_user ? "" : fields[1];
    // "CANCELLED by 1001"
    const size_t blank = fields[2].find(' ');
    job.state = fields[2].substr(0, blank);
    job.reason = describe_exit(fields[3]);
    if (blank != std::string_view::npos) job.reason = trim(fields[2].substr(blank));
    if (!has_ended(job)) continue;
    if (jobs.size() >= kSlurmJobsMax)
      return exhausted("Slurm lists more than " + std::to_string(kSlurmJobsMax) + " jobs");
    jobs.push_back(std::move(job));
  }
  return jobs;
}

Result<std::vector<SlurmNode>> read_nodes(std::string_view scontrol) {
  std::vector<SlurmNode> nodes;
  for (const auto line : split(scontrol, '\n')) {
    if (trim(line).empty()) continue;
    if (nodes.size() >= kSlurmNodesMax)
      return exhausted("Slurm lists more than " + std::to_string(kSlurmNodesMax) + " nodes");
    nodes.push_back(TRY(read_node(line)));
  }
  return nodes;
}

Result<uint64_t> read_submitted(std::string_view sbatch) {
  const std::string_view line = trim(sbatch);
  const auto id = parse_int(line.substr(0, line.find(';')));
  if (!id || *id <= 0) return unexpected("answer of sbatch", line);
  return uint64_t(*id);
}

Result<std::vector<std::string>> expand_host_list(std::string_view list) {
  std::vector<std::string> names;
  size_t start = 0;
  int depth = 0;
  for (size_t at = 0; at <= list.size(); ++at) {
    if (at < list.size() && list[at] == '[') ++depth;
    if (at < list.size() && list[at] == ']') --depth;
    if (at < list.size() && (list[at] != ',' || depth > 0)) continue;
    if (at > start) TRY(expand(list.substr(start, at - start), names));
    start = at + 1;
  }
  return names;
}

std::string join_names(const std::vector<std::string>& names) { return join(names, ","); }

int64_t gpus_of_gres(std::string_view gres) {
  constexpr int64_t kGpusMax = 1024;  // of a node: a larger number is a mistake
  int64_t gpus = 0;
  int depth = 0;
  std::string plain;  // without "(S:0-1)", whose content has commas and colons
  for (const char c : gres) {
    if (c == '(') ++depth;
    if (depth == 0) plain.push_back(c);
    if (c == ')') --depth;
  }
  for (const auto part : split(plain, ',')) {
    if (part != "gpu" && !part.starts_with("gpu:")) continue;
    const auto fields = split(part, ':');
    const auto number = parse_int(fields.back());
    gpus += number && *number >= 0 ? std::min(*number, kGpusMax) : 1;
  }
  return std::min(gpus, kGpusMax);
}

std::string slurm_message(std::string_view errors) {
  std::string_view last;
  for (const auto line : split(errors, '\n'))
    if (!trim(line).empty()) last = trim(line);
  if (const size_t at = last.find(": error: "); at != std::string_view::npos)
    last.remove_prefix(at + 9);
  return shorten(to_utf8(last), 300);
}

Error error_of_slurm(std::string_view errors) {
  const std::string message = slurm_message(errors);
  const auto has = [&](std::string_view text) { return message.find(text) != std::string::npos; };
  if (has("Zero Bytes were transmitted") || has("authentication") || has("Authentication") ||
      has("credential") || has("Access/permission denied"))
    return denied("Slurm denies access: " + message);
  if (has("accounting storage is disabled"))
    return not_found("Slurm has no accounting: " + message);
  if (has("the database") || has("slurmdbd") || has("slurm_persist_conn"))
    return unavailable("slurmdbd does not answer: " + message);
  Error error = error_of_rejection(message);
  if (has("nvalid job id") || has("already completing or completed") || has("already finished"))
    error.detail = SlurmFault::job_has_ended;
  return error;
}

Error error_of_rejection(std::string_view message) {
  const auto has = [&](std::string_view text) { return message.find(text) != std::string::npos; };
  if (has("Unable to contact slurm controller") || has("Socket timed out") ||
      has("Connection refused") || has("Communication connection failure") ||
      has("in standby mode") || has("Transport endpoint"))
    return unavailable("slurmctld does not answer: " + std::string(message));
  // A slurmctld that has just started knows no nodes yet, for example.
  const bool may_change = has("Required node not available") || has("Requested nodes are busy");
  std::string rejection = "Slurm rejects the request: " + std::string(message);
  return may_change ? exhausted(std::move(rejection)) : invalid(std::move(rejection));
}

}  // namespace trainyard::launch
