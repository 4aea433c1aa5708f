// `trainyard jobs`, `describe`, `top` and `cost`: query jobs and print them, once or (`top`,
// --watch) repeatedly.
#include <algorithm>
#include <iterator>
#include <string_view>

#include "base/nearest.hpp"
#include "base/plural.hpp"
#include "base/text.hpp"
#include "cli/activity_view.hpp"
#include "cli/commands.hpp"
#include "cli/cost_view.hpp"
#include "cli/top_view.hpp"
#include "cli/views/region_view.hpp"
#include "os/parallel.hpp"

namespace trainyard::cli {
namespace {

using client::Service;

constexpr int64_t kJobsDefault = 20;
constexpr int64_t kPageJobsMax = 100;  // of one query
constexpr int64_t kJobsMax = 10'000;   // far more than a person can read
constexpr Duration kWatchInterval = 2s;
constexpr Duration kTopInterval = 5s;  // metrics change each minute, states at any time
constexpr int64_t kTopJobsMax = 50;    // jobs whose hosts are shown
// After this time the jobs of a region are missing. It is longer than the 5 s in which a server
// notices that it cannot connect to another region's server.
constexpr Duration kRegionLimit = 10s;
constexpr const char* kStatuses[] = {"InProgress", "Completed", "Failed", "Stopping", "Stopped"};

Result<std::string> status_named(const std::string& typed) {
  std::vector<std::string> names(std::begin(kStatuses), std::end(kStatuses));
  for (const auto& name : names)
    if (equals_ignoring_case(name, typed)) return name;
  const std::string list = join(names, ", ");
  return invalid("unknown status '" + typed + "': one of " + list);
}

// Fetches jobs page by page, up to `jobs_max`.
Result<Json> fetch_jobs(client::Client& client, Json question, int64_t jobs_max,
                        const std::function<Result<void>()>& check_time = ok) {
  Json all = Json::array();
  while (int64_t(all.size()) < jobs_max) {
    TRY(check_time());
    question["MaxResults"] = std::min(kPageJobsMax, jobs_max - int64_t(all.size()));
    const Json page = TRY(client.call(Service::trainyard, "ListJobs", question));
    if (!page.is_object()) return invalid("the answer to ListJobs is not an object");
    if (const auto jobs = page.find("Jobs"); jobs != page.end() && jobs->is_array())
      all.insert(all.end(), jobs->begin(), jobs->end());
    const auto next = page.find("NextToken");
    if (next == page.end() || !next->is_string() || next->get_ref<const std::string&>().empty())
      break;
    question["NextToken"] = *next;
  }
  return Json{{"Jobs", std::move(all)}};
}

Result<Json> question_of(CommandContext& context, const Arguments& arguments) {
  Json question = Json::object();
  if (const auto status = arguments.value("--status"); !status.empty())
    question["StatusEquals"] = TRY(status_named(status));
  if (const auto name = arguments.value("--name"); !name.empty()) question["NameContains"] = name;
  if (const auto since = TRY(arguments.duration("--since")))
    question["CreationTimeAfter"] = to_seconds(context.clock.now() - *since);
  if (const auto tag = arguments.value("--tag"); !tag.empty()) {
    const size_t equals = tag.find('=');
    if (equals == 0) return invalid("--tag: missing key in '" + tag + "': use KEY=VALUE or KEY");
    question["TagKeyEquals"] = tag.substr(0, equals);
    if (equals != std::string::npos) question["TagValueEquals"] = tag.substr(equals + 1);
  }
  return question;
}

// Fetches the jobs of one region, once and within twice kRegionLimit. `settings`: those of the
// context's client.
Result<Json> fetch_region(CommandContext& context, client::Settings settings,
                          const std::string& region, const Json& question, int64_t jobs_max) {
  settings.region = region;
  settings.attempts_max = 1;
  settings.answer_limit = kRegionLimit;
  const auto client = TRY(context.open_client(std::move(settings)));
  const auto deadline = context.clock.monotonic() + kRegionLimit;
  Json answer = TRY(fetch_jobs(*client, question, jobs_max, [&]() -> Result<void> {
    if (context.clock.monotonic() < deadline) return {};
    return unavailable("timed out after " + std::to_string(kRegionLimit / 1s) + " s");
  }));
  // An invalid answer is the fault of this region, not of the list.
  if (auto jobs = job_views(answer); !jobs) return std::move(jobs).error();
  return answer;
}

// Queries all regions at the same time.
Result<std::vector<RegionJobs>> fetch_all_regions(CommandContext& context, const Json& question,
                                                  int64_t jobs_max) {
  const Json listed = TRY(context.client.call(Service::ec2, "DescribeRegions", Json::object())
                              .in("listing the regions"));
  std::vector<RegionJobs> regions;
  const std::vector<std::string> names = TRY(region_names(listed));
  for (const std::string& name : names) regions.push_back({name, Json::object()});
  const client::Settings settings = context.client.settings();
  TRY(os::for_each_in_parallel(regions.size(), kRegionsMax, [&](size_t i) -> Result<void> {
    regions[i].answer = fetch_region(context, settings, names[i], question, jobs_max);
    return {};
  }));
  return regions;
}

Result<std::string> format_jobs(CommandContext& context, const Arguments& arguments,
                                const Json& answer) {
  if (arguments.has("--json")) return dump(answer, 2) + "\n";
  const auto jobs = TRY(job_views(answer));
  if (jobs.empty()) return std::string("no jobs\n");
  return jobs_table(context.style, jobs, context.clock.now());
}

// Prints the jobs of all regions. While it watches, the regions without an answer are named below
// the jobs, so that they do not disturb the screen.
Result<int> jobs_of_all_regions(CommandContext& context, const Arguments& arguments,
                                int64_t jobs_max) {
  std::vector<RegionJobs> regions;
  const auto page = [&]() -> Result<std::string> {
    regions = TRY(fetch_all_regions(context, TRY(question_of(context, arguments)), jobs_max));
    return format_jobs(context, arguments, merge_regions(regions, size_t(jobs_max)));
  };
  if (arguments.has("--watch"))
    return redraw(context, kWatchInterval, [&]() -> Result<Frame> {
      const std::string text = TRY(page());
      return Frame{text + (arguments.has("--json") ? "" : missing_regions_text(regions))};
    });
  const std::string text = TRY(page());
  context.terminal.write_error(missing_regions_text(regions));
  if (std::ranges::none_of(regions, [](const RegionJobs& one) { return bool(one.answer); }))
    return unavailable("no region lists its jobs: " + counted(regions.size(), "region") +
                       " queried");
  TRY(context.terminal.write(text));
  return 0;
}

Result<Json> described_by_service(CommandContext& context, const FoundJob& found) {
  if (!found.job.of_batch())
    return context.client.call(Service::sagemaker, "DescribeTrainingJob",
                               {{"TrainingJobName", found.job.name}});
  const Json answer =
      TRY(context.client.call(Service::batch, "DescribeJobs", {{"jobs", {found.id()}}}));
  const auto jobs = answer.find("jobs");
  if (jobs == answer.end() || !jobs->is_array() || jobs->empty())
    return not_found("job " + found.id() + " no longer exists");
  return jobs->front();
}

// Adds the children of an array that run to the jobs of `top`.
Result<void> add_running_children(CommandContext& context, const JobView& array,
                                  std::vector<JobView>& jobs) {
  for (const char* status : {"RUNNING", "STARTING"}) {
    const Json page = TRY(context.client.call(
        Service::batch, "ListJobs",
        {{"arrayJobId", array.name}, {"jobStatus", status}, {"maxResults", kTopJobsMax}}));
    for (const Json& child : page.value("jobSummaryList", Json::array())) {
      if (int64_t(jobs.size()) >= kTopJobsMax) return {};
      jobs.push_back(TRY(fetch_job(context, child.value("jobId", ""))));
    }
  }
  return {};
}

Result<void> check_grouping(const std::string& by) {
  constexpr std::string_view kGroupings[] = {"user", "instance", "day", "job"};
  constexpr std::string_view kTag = "tag:";
  if (std::ranges::find(kGroupings, by) != std::end(kGroupings)) return {};
  if (by.starts_with(kTag) && by.size() > kTag.size()) return {};
  return invalid("--by: unknown grouping '" + by + "': use tag:KEY, user, instance, day or job");
}

// Prints the cost of one job, of an array with all its children.
Result<int> cost_of_job(CommandContext& context, const Arguments& arguments) {
  for (const char* option : {"--by", "--since"})
    if (!arguments.value(option).empty())
      return invalid(std::string(option) + " is for the costs of all jobs; leave out the job");
  const JobView job = TRY(find_job(context, arguments.operands[0])).job;
  if (arguments.has("--json")) {
    const Json answer =
        TRY(context.client.call(Service::trainyard, "DescribeJob", {{"JobName", job.name}}));
    TRY(context.terminal.write(dump(answer.value("Cost", Json::object()), 2) + "\n"));
    return 0;
  }
  TRY(context.terminal.write(cost_table(context.style, "job", cost_view_of(job))));
  return 0;
}

}  // namespace

Result<int> jobs_command(CommandContext& context, const Arguments& arguments) {
  const int64_t jobs_max = TRY(arguments.number("--max")).value_or(kJobsDefault);
  if (jobs_max < 1 || jobs_max > kJobsMax)
    return invalid("--max must be between 1 and " + std::to_string(kJobsMax) + ", not " +
                   std::to_string(jobs_max));
  if (arguments.has("--all-regions")) return jobs_of_all_regions(context, arguments, jobs_max);
  const auto page = [&]() -> Result<Frame> {
    const Json answer =
        TRY(fetch_jobs(context.client, TRY(question_of(context, arguments)), jobs_max));
    return Frame{TRY(format_jobs(context, arguments, answer))};
  };
  if (arguments.has("--watch")) return redraw(context, kWatchInterval, page);
  TRY(context.terminal.write(TRY(page()).text));
  return 0;
}

Result<int> describe_command(CommandContext& context, const Arguments& arguments) {
  const FoundJob found = TRY(find_job(context, arguments.operands[0]));
  Json described = TRY(described_by_service(context, found));
  if (Json activity = activity_json(found.job); !activity.empty())
    described["Activity"] = std::move(activity);
  TRY(context.terminal.write(arguments.has("--json") ? dump(described, 2) + "\n"
                                                     : job_page(context.style, found.job, described,
                                                                context.clock.now())));
  return 0;
}

Result<int> top_command(CommandContext& context, const Arguments& arguments) {
  std::string only;  // the requested job
  if (!arguments.operands.empty()) only = TRY(find_job(context, arguments.operands[0])).job.name;
  const auto page = [&]() -> Result<Frame> {
    std::vector<JobView> jobs, listed;
    if (only.empty())
      listed = TRY(job_views(
          TRY(fetch_jobs(context.client, {{"StatusEquals", "InProgress"}}, kTopJobsMax))));
    else
      listed.push_back(TRY(fetch_job(context, only)));
    for (const JobView& job : listed) {
      auto whole = only.empty() ? fetch_job(context, job.name) : job;
      // Skips a job that was removed after the list was fetched.
      if (!whole && whole.error().kind == Kind::not_found) continue;
      jobs.push_back(TRY(std::move(whole)));
      if (job.array) TRY(add_running_children(context, job, jobs));
    }
    const bool over = !only.empty() && jobs[0].finished();
    return Frame{top_page(context.style, jobs, context.clock.now()), !over};
  };
  if (!arguments.has("--once") && context.style.live) return redraw(context, kTopInterval, page);
  TRY(context.terminal.write(TRY(page()).text));
  return 0;
}

Result<int> cost_command(CommandContext& context, const Arguments& arguments) {
  if (!arguments.operands.empty()) return cost_of_job(context, arguments);
  const std::string by = arguments.value("--by", "day");
  TRY(check_grouping(by));
  const Duration since = TRY(arguments.duration("--since")).value_or(30 * 24h);
  const Json answer = TRY(context.client.call(
      Service::trainyard, "GetCostReport",
      {{"GroupBy", by}, {"CreationTimeAfter", to_seconds(context.clock.now() - since)}}));
  if (arguments.has("--json")) {
    TRY(context.terminal.write(dump(answer, 2) + "\n"));
    return 0;
  }
  TRY(context.terminal.write(cost_table(context.style, by, TRY(cost_view(answer)))));
  return 0;
}

}  // namespace trainyard::cli
