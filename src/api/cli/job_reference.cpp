#include "cli/job_reference.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace trainyard::cli {
namespace {

using client::Service;

constexpr size_t kReferenceBytesMax = 512;  // more than an ARN has
constexpr size_t kExactBytesMax = 63;       // of names and ids that DescribeJob takes
constexpr int64_t kNumberMax = 10'000;      // of children and nodes, as AWS
constexpr int64_t kCandidatesMax = 100;     // a page of ListJobs
constexpr size_t kCandidatesShownMax = 10;

constexpr const char* kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
constexpr const char* kDigits = "0123456789";

bool is_name(const std::string& text) {
  return !text.empty() && text[0] != '-' && text[0] != '_' &&
         text.find_first_not_of(std::string(kLetters) + kDigits + "-_") == std::string::npos;
}

Error job_not_found(const client::Client& client, const std::string& text) {
  return not_found("job '" + text + "' not found in " + client.settings().region +
                   "; `trainyard jobs` lists the jobs, with the ids of Batch jobs");
}

// Takes ":7" or "#1" off the end of `name`.
Result<std::optional<int64_t>> take_number(std::string& name, char mark, const char* what) {
  const size_t at = name.rfind(mark);
  if (at == std::string::npos) return std::optional<int64_t>();
  const std::string digits = name.substr(at + 1);
  const auto number = parse_int(digits);
  if (digits.find_first_not_of(kDigits) != std::string::npos || !number || *number > kNumberMax)
    return invalid("invalid " + std::string(what) + " '" + digits + "'");
  name.resize(at);
  return std::optional(*number);
}

// Describes the job with exactly this name or id. Returns nothing if it does not exist.
Result<std::optional<JobView>> describe(client::Client& client, const std::string& name) {
  // DescribeJob rejects other names as invalid.
  if (name.size() > kExactBytesMax || name.find('_') != std::string::npos)
    return std::optional<JobView>();
  auto answer = client.call(Service::trainyard, "DescribeJob", {{"JobName", name}});
  if (!answer && answer.error().kind == Kind::not_found) return std::optional<JobView>();
  return std::optional(TRY(job_view(TRY(std::move(answer)))));
}

// Selects the Batch job that a reference names.
Result<JobView> choose(client::Client& client, const OutputStyle& style, Instant now,
                       const std::string& text, const std::string& name, JobScope scope) {
  std::vector<JobView> jobs = TRY(job_views(TRY(client.call(
      Service::trainyard, "ListJobs", {{"JobReference", name}, {"MaxResults", kCandidatesMax}}))));
  if (jobs.empty()) return job_not_found(client, text);
  if (jobs.size() > 1 && scope == JobScope::unfinished) {
    std::vector<JobView> unfinished = jobs;
    std::erase_if(unfinished, [](const JobView& job) { return job.finished(); });
    if (unfinished.empty())
      return conflict("all of the " + std::to_string(jobs.size()) + " jobs that '" + name +
                      "' names have ended:\n" + candidates_table(style, jobs, now));
    jobs = std::move(unfinished);
  }
  if (jobs.size() > 1)
    return conflict("'" + name + "' names " + std::to_string(jobs.size()) +
                    (int64_t(jobs.size()) == kCandidatesMax ? " or more" : "") +
                    " jobs; choose one by its id:\n" + candidates_table(style, jobs, now));
  return std::move(jobs.front());
}

Result<void> check_parts(const JobReference& reference, const JobView& job) {
  if (reference.child && job.name.find(':') == std::string::npos)
    return job.array
               ? not_found("array '" + job.name +
                           "' has the children :0 to :" + std::to_string(job.array->size - 1))
               : invalid("job '" + job.name +
                         "' is not an array: it has no child :" + std::to_string(*reference.child));
  if (!reference.node) return {};
  int64_t hosts = 0;
  for (const auto& group : job.groups) hosts += group.count;
  if (!job.of_batch() || job.array)
    return invalid("job '" + job.name + "' is not a multi-node parallel job of Batch");
  if (*reference.node >= hosts)
    return not_found("job '" + job.name + "' has the nodes #0 to #" + std::to_string(hosts - 1));
  return {};
}

}  // namespace

std::string JobReference::text() const {
  return name + (child ? ":" + std::to_string(*child) : "") +
         (node ? "#" + std::to_string(*node) : "");
}

Result<JobReference> parse_job_reference(const std::string& text) {
  const auto wrong = [&](const std::string& why) {
    return invalid("invalid job '" + shorten(text, 80) + "': " + why +
                   "; write NAME, ID, ID:CHILD or ID#NODE");
  };
  JobReference reference;
  if (text.size() > kReferenceBytesMax) return wrong("too long");
  reference.name = text.substr(text.starts_with("arn:") ? text.rfind('/') + 1 : 0);
  auto node = take_number(reference.name, '#', "node");
  if (!node) return wrong(node.error().message);
  auto child = take_number(reference.name, ':', "child");
  if (!child) return wrong(child.error().message);
  reference.node = *node;
  reference.child = *child;
  if (!is_name(reference.name)) return wrong("names consist of letters, digits, '-' and '_'");
  if (reference.node && reference.child) return wrong("a child of an array has no nodes");
  return reference;
}

std::string FoundJob::id() const { return job.name + (node ? "#" + std::to_string(*node) : ""); }

std::string candidates_table(const OutputStyle& style, const std::vector<JobView>& jobs,
                             Instant now) {
  std::vector<std::vector<Cell>> rows;
  for (const JobView& job : jobs) {
    if (rows.size() == kCandidatesShownMax) break;
    rows.push_back({{job.name},
                    {job.display_name},
                    {status_text(job), paint_of_job(job)},
                    {job.created ? duration_text(now - *job.created) : "", Paint::dim}});
  }
  std::string out = table(style, {{"id"}, {"name"}, {"status"}, {"age", true}}, rows);
  if (jobs.size() > rows.size())
    out += "and " + std::to_string(jobs.size() - rows.size()) + " more\n";
  while (out.ends_with('\n')) out.pop_back();
  return out;
}

Result<FoundJob> find_job(client::Client& client, const OutputStyle& style, Instant now,
                          const std::string& text, JobScope scope) {
  const JobReference reference = TRY(parse_job_reference(text));
  const std::string child =
      reference.child ? ":" + std::to_string(*reference.child) : std::string();
  auto job = TRY(describe(client, reference.name + child));
  if (!job) {
    // The array itself may exist, with fewer children.
    auto base = child.empty() ? job : TRY(describe(client, reference.name));
    if (!base) base = TRY(choose(client, style, now, text, reference.name, scope));
    // ListJobs has neither hosts nor children.
    job = TRY(describe(client, base->name + child));
    if (!job) job = std::move(base);
  }
  TRY(check_parts(reference, *job));
  FoundJob found{std::move(*job), {}};
  if (reference.node) found.node = uint32_t(*reference.node);
  return found;
}

}  // namespace trainyard::cli
