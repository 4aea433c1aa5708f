#include "launch/slurm/rest_answers.hpp"

#include <algorithm>
#include <array>

#include "base/text.hpp"
#include "launch/slurm/answers.hpp"
#include "launch/slurm/components.hpp"
#include "launch/slurm/job_comment.hpp"

namespace trainyard::launch {
namespace {

constexpr int64_t kAmountMax = int64_t{1} << 40;
// Slurm's errors for jobs that have ended, or are unknown: "Invalid job id specified", "Job/step
// already completing or completed" and "Job has already finished".
constexpr std::array<int64_t, 3> kJobHasEnded = {2017, 2021, 2084};
// Numbers in this range say that slurmctld or slurmd answered. Others come from the operating
// system, or from Slurm's protocol: "Unexpected message received" (1000), "Socket timed out on
// send/recv operation" (5004).
constexpr int64_t kAnswersFirst = 2000, kAnswersEnd = 5000;
// Slurm 24.11's slurmrestd has it for tokens that slurmctld does not accept.
constexpr int kNetworkAuthenticationRequired = 511;

// A number, or {"set": true, "infinite": false, "number": 5}.
int64_t number_of(const Json& object, const char* name) {
  auto found = object.find(name);
  if (found == object.end()) return 0;
  const Json* value = &*found;
  if (value->is_object()) {
    const auto number = value->find("number");
    if (number == value->end()) return 0;
    value = &*number;
  }
  if (!value->is_number_integer()) return 0;
  return std::clamp<int64_t>(value->get<int64_t>(), 0, kAmountMax);
}

// A text, or a list of texts.
std::vector<std::string> texts_of(const Json& object, const char* name) {
  std::vector<std::string> texts;
  const auto found = object.find(name);
  if (found == object.end()) return texts;
  if (found->is_string()) texts.push_back(found->get<std::string>());
  if (found->is_array())
    for (const Json& each : *found)
      if (each.is_string()) texts.push_back(each.get<std::string>());
  return texts;
}

Result<Json> list_in(std::string_view body, const char* name, size_t max) {
  Json json = TRY(parse_json(body).in("reading slurmrestd's response"));
  const auto found = json.is_object() ? json.find(name) : json.end();
  if (found == json.end() || !found->is_array())
    return corrupt("slurmrestd's response lacks the list '" + std::string(name) + "'");
  if (found->size() > max)
    return exhausted("Slurm lists more than " + std::to_string(max) + " " + name);
  for (const Json& each : *found)
    if (!each.is_object())
      return corrupt("slurmrestd's list '" + std::string(name) +
                     "' has an element that is not an object");
  return std::move(*found);
}

// Formats the expected start in local time, as squeue does.
std::string start_text(const SlurmJob& job, int64_t seconds) {
  if (job.state != "PENDING" || seconds == 0) return "";
  return to_iso8601(Instant(Duration(seconds * 1000)), false);
}

struct SlurmError {
  int64_t number = 0;
  std::string message;  // "": there is none
};

// The description says what slurmrestd was doing ("Batch job submission failed"), if there is also
// an error of Slurm's.
void read_error(const Json& object, SlurmError& error) {
  for (const char* member : {"error_number", "error_code", "code"})
    if (error.number == 0) error.number = number_of(object, member);
  for (const char* member : {"error", "description", "message"})
    if (const std::string text = string_or(object, member); error.message.empty() && !text.empty())
      error.message = shorten(text, 300);
}

// Reads the first error of a response. The end of a job has a list "status" from v0.0.42 on.
SlurmError first_error(const Json& response) {
  SlurmError error;
  if (!response.is_object()) return error;
  if (const auto errors = response.find("errors"); errors != response.end() && errors->is_array())
    for (const Json& each : *errors)
      if (each.is_object()) read_error(each, error);
  if (const auto jobs = response.find("status"); jobs != response.end() && jobs->is_array())
    for (const Json& each : *jobs)
      if (const auto found = each.is_object() ? each.find("error") : Json::const_iterator();
          each.is_object() && found != each.end() && found->is_object() &&
          number_of(*found, "code") != 0)
        read_error(*found, error);
  return error;
}

// Decodes base64url without padding.
Result<std::string> from_base64_url(std::string_view text) {
  std::string plain(text);
  std::ranges::replace(plain, '-', '+');
  std::ranges::replace(plain, '_', '/');
  while (plain.size() % 4 != 0) plain.push_back('=');
  return from_base64(plain);
}

}  // namespace

Result<std::vector<SlurmJob>> read_rest_jobs(std::string_view body, std::string_view own_user) {
  std::vector<ListedJob> listed;
  for (const Json& each : TRY(list_in(body, "jobs", kSlurmJobsMax))) {
    SlurmJob job;
    job.user = string_or(each, "user_name");
    job.comment = string_or(each, "comment");
    job.id = uint64_t(number_of(each, "job_id"));
    // slurmctld does not know the names of accounts that are missing on its machine.
    if (job.id == 0 || job.user.empty() || !is_job_comment(job.comment)) continue;
    if (job.user == own_user) job.user.clear();
    const auto states = texts_of(each, "job_state");
    // A list has flags after the state: "RUNNING", "COMPLETING".
    job.state = std::ranges::find(states, "COMPLETING") != states.end() ? "COMPLETING"
                : states.empty()                                        ? ""
                                                                        : states.front();
    job.reason = string_or(each, "state_reason");
    job.expected_start = start_text(job, number_of(each, "start_time"));
    job.nodes = string_or(each, "nodes");
    job.name = string_or(each, "name");
    job.requeued = number_of(each, "restart_cnt") > 0;
    job.preempted = number_of(each, "preempt_time") > 0;
    if (job.requeued && job.nodes.empty()) job.nodes = string_or(each, "required_nodes");
    const int64_t first = number_of(each, "het_job_id");
    const int64_t component = first == 0 ? 0 : number_of(each, "het_job_offset");
    if (component >= int64_t(kSlurmComponentsMax)) continue;
    if (component > 0) job.id = uint64_t(first);
    listed.push_back({std::move(job), size_t(component)});
  }
  return join_components(std::move(listed));
}

Result<std::vector<SlurmNode>> read_rest_nodes(std::string_view body) {
  std::vector<SlurmNode> nodes;
  for (const Json& each : TRY(list_in(body, "nodes", kSlurmNodesMax))) {
    SlurmNode node;
    node.name = string_or(each, "name");
    if (node.name.empty()) return corrupt("slurmrestd lists a node without a name");
    node.address = string_or(each, "address");
    for (const char* member : {"state", "state_flags"})
      for (auto& state : texts_of(each, member)) {
        node.states.push_back(to_upper(std::move(state)));
        if (node.states.back() == "NOT_RESPONDING") node.responds = false;
      }
    node.reason = string_or(each, "reason");
    node.partitions = texts_of(each, "partitions");
    for (const auto& list : texts_of(each, "features"))
      for (const auto feature : split(list, ','))
        if (!feature.empty()) node.features.emplace_back(feature);
    node.cpus = number_of(each, "cpus");
    node.cpus_allocated = number_of(each, "alloc_cpus");
    node.memory_mib = number_of(each, "real_memory");
    node.memory_allocated_mib = number_of(each, "alloc_memory");
    node.gpus = gpus_of_gres(string_or(each, "gres"));
    node.gpus_allocated = gpus_of_gres(string_or(each, "gres_used"));
    nodes.push_back(std::move(node));
  }
  return nodes;
}

Result<uint64_t> read_rest_submitted(std::string_view body) {
  const Json json = TRY(parse_json(body).in("reading slurmrestd's response"));
  const int64_t id = json.is_object() ? number_of(json, "job_id") : 0;
  if (id == 0) return corrupt("slurmrestd's response to a submission lacks job_id");
  return uint64_t(id);
}

Result<void> check_rest_answer(int status, std::string_view body) {
  const auto json = parse_json(body);
  auto [number, message] = json ? first_error(*json) : SlurmError();
  if (status >= 200 && status < 300 && message.empty()) return {};
  if (std::ranges::find(kJobHasEnded, number) != kJobHasEnded.end()) return not_found(message);
  if (message.empty()) message = "HTTP status " + std::to_string(status);
  if (status == 401 || status == 403 || status == kNetworkAuthenticationRequired)
    return denied("slurmrestd denies access: " + message + ": check slurm.rest_token_file");
  Error rejection = error_of_rejection(message);
  const bool answered = number >= kAnswersFirst && number < kAnswersEnd;
  if (status == 400 || status == 404 || answered || rejection.kind == Kind::unavailable)
    return rejection;
  return unavailable("slurmrestd reports: " + message +
                     ": slurmctld does not answer, or does not accept the token in "
                     "slurm.rest_token_file");
}

Result<void> check_token(std::string_view token, Instant now) {
  const auto parts = split(token, '.');
  if (parts.size() != 3)
    return denied("the file does not contain a JWT: `scontrol token` prints one");
  const auto payload = from_base64_url(parts[1]);
  const auto json = payload ? parse_json(*payload) : Result<Json>(payload.error());
  if (!json || !json->is_object())
    return denied("the file does not contain a JWT: `scontrol token` prints one");
  const Instant expires(Duration(number_of(*json, "exp") * 1000));
  if (json->contains("exp") && expires <= now)
    return denied("the token expired at " + to_iso8601(expires, false) +
                  ": write a new one to the file, as `scontrol token` prints it");
  return {};
}

}  // namespace trainyard::launch
