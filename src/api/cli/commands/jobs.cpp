// `trainyard jobs`, `describe`, `top` and `cost`: query jobs and print them, once or (`top`,
// --watch) repeatedly.
#include <algorithm>

#include "base/text.hpp"
#include "cli/activity_view.hpp"
#include "cli/commands.hpp"
#include "cli/cost_view.hpp"

namespace trainyard::cli {
namespace {

using client::Service;

constexpr int64_t kJobsDefault = 20;
constexpr int64_t kPageJobsMax = 100;  // of one query
constexpr int64_t kJobsMax = 10'000;   // far more than a person can read
constexpr Duration kWatchInterval = 2s;
constexpr Duration kTopInterval = 5s;  // metrics change each minute, states at any time
constexpr int64_t kTopJobsMax = 50;    // jobs whose hosts are shown
constexpr const char* kStatuses[] = {"InProgress", "Completed", "Failed", "Stopping", "Stopped"};

Result<std::string> status_named(const std::string& typed) {
  std::vector<std::string> names(std::begin(kStatuses), std::end(kStatuses));
  for (const auto& name : names)
    if (equals_ignoring_case(name, typed)) return name;
  const std::string near = nearest(typed, names);
  return invalid("unknown status '" + typed + "'" +
                 (near.empty() ? "" : "; did you mean " + near + "?"));
}

// Fetches jobs page by page, up to `jobs_max`.
Result<Json> fetch_jobs(World& world, Json question, int64_t jobs_max) {
  Json all = Json::array();
  while (int64_t(all.size()) < jobs_max) {
    question["MaxResults"] = std::min(kPageJobsMax, jobs_max - int64_t(all.size()));
    const Json page = TRY(world.client.call(Service::trainyard, "ListJobs", question));
    for (const Json& job : page.value("Jobs", Json::array())) all.push_back(job);
    const std::string next = page.value("NextToken", "");
    if (next.empty()) break;
    question["NextToken"] = next;
  }
  return Json{{"Jobs", std::move(all)}};
}

Result<Json> question_of(World& world, const Arguments& arguments) {
  Json question = Json::object();
  if (const auto status = arguments.value("--status"); !status.empty())
    question["StatusEquals"] = TRY(status_named(status));
  if (const auto name = arguments.value("--name"); !name.empty()) question["NameContains"] = name;
  if (const auto since = TRY(arguments.duration("--since")))
    question["CreationTimeAfter"] = to_seconds(world.clock.now() - *since);
  if (const auto tag = arguments.value("--tag"); !tag.empty()) {
    const size_t equals = tag.find('=');
    question["TagKeyEquals"] = tag.substr(0, equals);
    if (equals != std::string::npos) question["TagValueEquals"] = tag.substr(equals + 1);
  }
  return question;
}

Result<Json> described_by_service(World& world, const JobView& job) {
  if (!job.of_batch())
    return world.client.call(Service::sagemaker, "DescribeTrainingJob",
                             {{"TrainingJobName", job.name}});
  const Json answer =
      TRY(world.client.call(Service::batch, "DescribeJobs", {{"jobs", {job.name}}}));
  const auto jobs = answer.find("jobs");
  if (jobs == answer.end() || !jobs->is_array() || jobs->empty())
    return not_found("job " + job.name + " no longer exists");
  return jobs->front();
}

}  // namespace

Result<int> jobs_command(World& world, const Arguments& arguments) {
  const int64_t jobs_max = TRY(arguments.number("--max")).value_or(kJobsDefault);
  if (jobs_max < 1 || jobs_max > kJobsMax)
    return invalid("--max must be between 1 and " + std::to_string(kJobsMax));
  const auto page = [&]() -> Result<Frame> {
    const Json answer = TRY(fetch_jobs(world, TRY(question_of(world, arguments)), jobs_max));
    if (arguments.has("--json")) return Frame{dump(answer, 2) + "\n"};
    const auto jobs = TRY(job_views(answer));
    if (jobs.empty()) return Frame{"no jobs\n"};
    return Frame{jobs_table(world.looks, jobs, world.clock.now())};
  };
  if (arguments.has("--watch")) return redraw(world, kWatchInterval, page);
  TRY(world.terminal.write(TRY(page()).text));
  return 0;
}

Result<int> describe_command(World& world, const Arguments& arguments) {
  const JobView job = TRY(fetch_job(world, arguments.operands[0]));
  Json described = TRY(described_by_service(world, job));
  if (Json activity = activity_json(job); !activity.empty())
    described["Activity"] = std::move(activity);
  TRY(world.terminal.write(arguments.has("--json")
                               ? dump(described, 2) + "\n"
                               : job_page(world.looks, job, described, world.clock.now())));
  return 0;
}

Result<int> top_command(World& world, const Arguments& arguments) {
  const auto page = [&]() -> Result<Frame> {
    std::vector<JobView> jobs;
    if (!arguments.operands.empty()) {
      auto job = fetch_job(world, arguments.operands[0]);
      if (!job) return std::move(job).error();
      jobs.push_back(std::move(*job));
    } else {
      const auto running =
          TRY(job_views(TRY(fetch_jobs(world, {{"StatusEquals", "InProgress"}}, kTopJobsMax))));
      for (const JobView& job : running) {
        auto whole = fetch_job(world, job.name);
        // Skips a job that was removed after the list was fetched.
        if (!whole && whole.error().kind == Kind::not_found) continue;
        if (!whole) return std::move(whole).error();
        jobs.push_back(std::move(*whole));
      }
    }
    const bool over = !arguments.operands.empty() && jobs[0].finished();
    return Frame{top_page(world.looks, jobs, world.clock.now()), !over};
  };
  if (!arguments.has("--once") && world.looks.live) return redraw(world, kTopInterval, page);
  TRY(world.terminal.write(TRY(page()).text));
  return 0;
}

Result<int> cost_command(World& world, const Arguments& arguments) {
  const std::string by = arguments.value("--by", "day");
  const Duration since = TRY(arguments.duration("--since")).value_or(30 * 24h);
  const Json answer = TRY(world.client.call(
      Service::trainyard, "GetCostReport",
      {{"GroupBy", by}, {"CreationTimeAfter", to_seconds(world.clock.now() - since)}}));
  if (arguments.has("--json")) {
    TRY(world.terminal.write(dump(answer, 2) + "\n"));
    return 0;
  }
  TRY(world.terminal.write(cost_table(world.looks, by, TRY(cost_view(answer)))));
  return 0;
}

}  // namespace trainyard::cli
