#include "cli/job_view.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/plural.hpp"
#include "base/text.hpp"
#include "cli/activity_view.hpp"
#include "cli/batch_log.hpp"
#include "domain/job.hpp"
#include "domain/price.hpp"
#include "domain/status_message.hpp"

namespace trainyard::cli {
namespace {

constexpr int kNameWidthMin = 12;
constexpr int kJobNameWidthMin = 32;  // most names, whole
constexpr int kStatusWidthMin = 22;   // "InProgress Downloading"
constexpr int kReasonWidthMin = 24;
constexpr int kMessageWidthMin = 36;  // of the timeline, rather than bars
constexpr int kLabelWidth = 14;       // of the left column of a page
constexpr size_t kShortIdBytesMin = 8;

const Json* member(const Json& json, const char* name) {
  if (!json.is_object()) return nullptr;
  const auto found = json.find(name);
  return found == json.end() || found->is_null() ? nullptr : &*found;
}
int64_t integer_of(const Json& json, const char* name) {
  const Json* found = member(json, name);
  return found && found->is_number() ? found->get<int64_t>() : 0;
}
bool truth_of(const Json& json, const char* name) {
  const Json* found = member(json, name);
  return found && found->is_boolean() && found->get<bool>();
}
// Reads an instant: seconds since 1970, as in the JSON protocols.
std::optional<Instant> instant_of(const Json& json, const char* name) {
  const Json* found = member(json, name);
  if (!found || !found->is_number()) return {};
  return from_milliseconds(std::llround(found->get<double>() * 1000));
}
const Json& list_of(const Json& json, const char* name) {
  static const Json kEmpty = Json::array();
  const Json* found = member(json, name);
  return found && found->is_array() ? *found : kEmpty;
}
int64_t millionths_of(const Json& json, const char* name) {
  const auto amount = parse_double(string_or(json, name));
  return amount ? std::llround(*amount * double(domain::kMillionths)) : 0;
}

HostView host_view(const Json& json) {
  HostView host;
  host.name = string_or(json, "Name");
  host.instance_type = string_or(json, "InstanceType");
  host.machine = string_or(json, "Machine");
  host.state = string_or(json, "State");
  host.failure = string_or(json, "FailureReason");
  host.state_since = instant_of(json, "StateSince");
  if (member(json, "ExitCode")) host.exit_code = integer_of(json, "ExitCode");
  host.cpus = double_or(json, "Cpus");
  host.memory_bytes = integer_of(json, "MemoryInBytes");
  host.gpus = integer_of(json, "Gpus");
  for (const Json& usage : list_of(json, "Utilization")) {
    UsageView view{string_or(usage, "MetricName"), {}};
    for (const Json& value : list_of(usage, "Values"))
      if (value.is_number()) view.values.push_back(value.get<double>());
    host.usage.push_back(std::move(view));
  }
  const auto age = [](const Json& of, const char* name) {
    return member(of, name) ? std::optional(integer_of(of, name)) : std::nullopt;
  };
  host.output_seconds = age(json, "SecondsSinceOutput");
  for (const Json& rank : list_of(json, "Ranks"))
    host.ranks.push_back({integer_of(rank, "Rank"), age(rank, "SecondsSinceOutput"),
                          age(rank, "SecondsSinceCollective")});
  for (const Json& fault : list_of(json, "Faults"))
    host.faults.push_back(
        {string_or(fault, "Fault"), integer_of(fault, "Rank"), string_or(fault, "Message")});
  return host;
}

std::string figure(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

std::string percent(double part) { return std::to_string(std::lround(part * 100)) + "%"; }

// Builds a page of lines and sections. Leaves out lines without a value.
class Page {
 public:
  explicit Page(const OutputStyle& style) : style_(style) {}
  void line(const std::string& label, const std::string& value, Paint how = Paint::none) {
    if (!value.empty()) text_ += paragraph(style_, value, how, label, kLabelWidth);
  }
  void heading(const std::string& title) {
    text_ += "\n" + paint(style_, Paint::bold, title) + "\n";
  }
  void block(const std::string& text) { text_ += text; }
  const std::string& text() const { return text_; }

 private:
  const OutputStyle& style_;
  std::string text_;
};

// The message of a transition without the job's note and the reason of its failure, which have
// lines of the page.
std::string message_of(const Json& transition, const JobView& job) {
  const std::string message =
      domain::without_note(string_or(transition, "StatusMessage"), job.note);
  return message == job.failure_reason ? "" : message;
}

void add_timeline(Page& page, const OutputStyle& style, const JobView& job, const Json& described,
                  Instant now) {
  const Json& transitions = list_of(described, "SecondaryStatusTransitions");
  if (transitions.empty()) return;
  page.heading("Timeline");
  std::vector<std::vector<Cell>> rows;
  double longest = 0;
  const auto length = [&](const Json& transition) {
    const auto start = instant_of(transition, "StartTime");
    const auto end = instant_of(transition, "EndTime");
    return start ? end.value_or(now) - *start : Duration(0);
  };
  for (const Json& transition : transitions)
    longest = std::max(longest, double(length(transition) / 1ms));
  for (const Json& transition : transitions) {
    const auto start = instant_of(transition, "StartTime");
    const std::string status = string_or(transition, "Status");
    const bool last = &transition == &transitions.back();
    const bool over = member(transition, "EndTime") != nullptr;
    const bool final = last && paint_of_status(status) != Paint::none;
    rows.push_back(
        {{start ? time_text(*start) : "", Paint::dim},
         {status, last ? (final ? paint_of_status(status) : Paint::bold) : Paint::none},
         {final ? "" : duration_text(length(transition)) + (over ? "" : " so far")},
         {final || longest <= 0 ? "" : bar(style, double(length(transition) / 1ms) / longest, 12)},
         {message_of(transition, job), last ? Paint::none : Paint::dim}});
  }
  page.block(table(style,
                   {{.title = "since", .drop = 1},
                    {.title = "status"},
                    {.title = "took", .right = true, .drop = 2},
                    {.title = "", .drop = 4},
                    {.title = "message",
                     .width_min = kMessageWidthMin,
                     .drop = 3,
                     .overflow = Overflow::wrap,
                     .below = true}},
                   rows));
}

void add_channels(Page& page, const OutputStyle& style, const Json& described) {
  const Json& channels = list_of(described, "InputDataConfig");
  if (channels.empty()) return;
  page.heading("Channels");
  std::vector<std::vector<Cell>> rows;
  for (const Json& channel : channels) {
    static const Json kNothing = Json::object();
    const Json* source = member(channel, "DataSource");
    const Json* s3 = source ? member(*source, "S3DataSource") : nullptr;
    const Json* shared = source ? member(*source, "FileSystemDataSource") : nullptr;
    const Json& from = s3 ? *s3 : kNothing;
    rows.push_back(
        {{string_or(channel, "ChannelName")},
         {s3       ? string_or(from, "S3Uri")
          : shared ? string_or(*shared, "FileSystemId") + ":" + string_or(*shared, "DirectoryPath")
                   : ""},
         {string_or(channel, "InputMode")},
         {string_or(from, "S3DataDistributionType")},
         {string_or(channel, "ContentType")}});
  }
  page.block(table(style,
                   {{.title = "channel", .width_min = kNameWidthMin, .overflow = Overflow::middle},
                    {.title = "from", .width_min = kReasonWidthMin, .overflow = Overflow::wrap},
                    {.title = "mode", .drop = 1},
                    {.title = "distribution", .drop = 3},
                    {.title = "type", .width_min = kNameWidthMin, .drop = 2}},
                   rows));
}

std::string share_text(const HostView& host) {
  if (host.cpus <= 0) return "";
  std::string text = figure(host.cpus) + (host.cpus == 1 ? " cpu, " : " cpus, ") +
                     human_bytes(uint64_t(host.memory_bytes));
  if (host.gpus > 0) text += ", " + counted(uint64_t(host.gpus), "GPU");
  return text;
}

void add_hosts(Page& page, const OutputStyle& style, const JobView& job, Instant now) {
  if (job.hosts.empty()) return;
  page.heading("Hosts");
  std::vector<std::vector<Cell>> rows;
  for (const HostView& host : job.hosts) {
    rows.push_back(
        {{host.name},
         {host.instance_type},
         {host.machine},
         {share_text(host)},
         {host.state, host.state == "failed" || host.state == "lost" ? Paint::red : Paint::none},
         {host.state_since ? duration_text(now - *host.state_since) : ""},
         {host.exit_code ? std::to_string(*host.exit_code) : ""},
         {host.failure.substr(0, host.failure.find('\n')), Paint::red}});  // the page has the rest
  }
  page.block(table(style,
                   {{.title = "host"},
                    {.title = "instance", .drop = 3},
                    {.title = "machine", .width_min = kNameWidthMin, .drop = 4},
                    {.title = "share", .drop = 2},
                    {.title = "state"},
                    {.title = "since", .right = true, .drop = 1},
                    {.title = "exit", .right = true},
                    {.title = "reason",
                     .width_min = kReasonWidthMin,
                     .drop = 5,
                     .overflow = Overflow::wrap,
                     .below = true}},
                   rows));
}

void add_metrics(Page& page, const OutputStyle& style, const JobView& job) {
  if (job.metrics.empty()) return;
  page.heading("Metrics");
  std::vector<std::vector<Cell>> rows;
  const Column name{.title = "metric", .width_min = kReasonWidthMin, .overflow = Overflow::middle};
  if (job.array) {
    const auto of_child = [](const std::optional<int64_t>& child) {
      return child ? "child " + std::to_string(*child) : std::string();
    };
    for (const MetricView& metric : job.metrics)
      rows.push_back({{metric.name},
                      {figure(metric.value)},
                      {of_child(metric.child), Paint::dim},
                      {figure(metric.lowest)},
                      {of_child(metric.lowest_child), Paint::dim}});
    page.block(table(style, {name, {"highest", true}, {""}, {"lowest", true}, {""}}, rows));
    return;
  }
  for (const MetricView& metric : job.metrics)
    rows.push_back({{metric.name},
                    {figure(metric.value)},
                    {metric.at ? time_text(*metric.at) : "", Paint::dim}});
  page.block(table(style, {name, {"last", true}, {.title = "at", .drop = 1}}, rows));
}

// Adds the definition and queue of a Batch job.
void add_batch(Page& page, const JobView& job, const Json& described) {
  page.line("name", label_of(job));
  const auto last_part = [](const std::string& arn) { return arn.substr(arn.rfind('/') + 1); };
  page.line("queue", last_part(string_or(described, "jobQueue")));
  page.line("definition", last_part(string_or(described, "jobDefinition")));
  if (const Json* container = member(described, "container"))
    page.line("image", string_or(*container, "image"));
}

// "/aws/batch/job hello/default/4b7d..  (trainyard logs 4b7d..)"
std::string place_of_log(const JobView& job, const Json& described) {
  const std::string command = "trainyard logs " + job.name;
  const auto sources = log_sources(described, "");
  if (sources.empty()) return command;
  return sources.back().group + " " + sources.back().stream + "  (" + command + ")";
}

void add_links(Page& page, const JobView& job, const Json& described) {
  page.heading("Links");
  if (const Json* artifacts = member(described, "ModelArtifacts"))
    page.line("model", string_or(*artifacts, "S3ModelArtifacts"));
  if (const Json* output = member(described, "OutputDataConfig"))
    page.line("output", string_or(*output, "S3OutputPath"));
  if (const Json* checkpoint = member(described, "CheckpointConfig"))
    page.line("checkpoints", string_or(*checkpoint, "S3Uri"));
  if (const Json* board = member(described, "TensorBoardOutputConfig"))
    page.line("tensorboard", domain::tensorboard_uri(string_or(*board, "S3OutputPath"), job.name));
  if (!job.of_batch())
    page.line("log",
              "/aws/sagemaker/TrainingJobs " + job.name + "/  (trainyard logs " + job.name + ")");
  else
    page.line("log", place_of_log(job, described));
  page.line("arn", job.arn);
}

}  // namespace

Result<JobView> job_view(const Json& json) {
  JobView job;
  job.name = TRY(string_at(json, "Name"));
  job.status = TRY(string_at(json, "Status"));
  job.arn = string_or(json, "Arn");
  job.secondary_status = string_or(json, "SecondaryStatus");
  job.display_name = string_or(json, "DisplayName");
  job.region = string_or(json, "Region");
  if (const Json* array = member(json, "Array"))
    job.array = ArrayView{integer_of(*array, "Size"), integer_of(*array, "Running"),
                          integer_of(*array, "Succeeded"), integer_of(*array, "Failed")};
  job.wait_reason = string_or(json, "WaitReason");
  job.failure_reason = string_or(json, "FailureReason");
  job.status_reason = string_or(json, "StatusReason");
  job.note = string_or(json, "Note");
  for (const Json& note : list_of(json, "Notes"))
    if (note.is_string()) job.notes.push_back(note.get<std::string>());
  job.user = string_or(json, "User");
  job.created = instant_of(json, "CreationTime");
  job.started = instant_of(json, "TrainingStartTime");
  job.ended = instant_of(json, "TrainingEndTime");
  for (const Json& group : list_of(json, "InstanceGroups"))
    job.groups.push_back({string_or(group, "InstanceType"), integer_of(group, "InstanceCount")});
  job.training_seconds = integer_of(json, "TrainingTimeInSeconds");
  job.billable_seconds = integer_of(json, "BillableTimeInSeconds");
  job.attempts = integer_of(json, "Attempts");
  job.spot = truth_of(json, "Spot");
  if (const Json* cost = member(json, "Cost")) {
    job.currency = string_or(*cost, "Currency");
    job.cost_millionths = millionths_of(*cost, "Amount");
    job.on_demand_millionths = millionths_of(*cost, "OnDemandAmount");
    for (const Json& type : list_of(*cost, "Unpriced"))
      if (type.is_string()) job.unpriced.push_back(type.get<std::string>());
  }
  for (const Json& tag : list_of(json, "Tags"))
    job.tags.emplace_back(string_or(tag, "Key"), string_or(tag, "Value"));
  for (const Json& host : list_of(json, "Hosts")) job.hosts.push_back(host_view(host));
  for (const Json& metric : list_of(json, "Metrics"))
    job.metrics.push_back(
        {string_or(metric, "Name"), double_or(metric, "Value"), instant_of(metric, "At"), {}, {}});
  if (const Json* array = member(json, "Array"))
    for (const Json& metric : list_of(*array, "Metrics"))
      job.metrics.push_back({string_or(metric, "Name"),
                             double_or(metric, "Highest"),
                             {},
                             integer_of(metric, "HighestIndex"),
                             integer_of(metric, "LowestIndex"),
                             double_or(metric, "Lowest")});
  for (const Json& one : list_of(json, "Progress"))
    job.progress.push_back({string_or(one, "Host"), string_or(one, "What"),
                            integer_of(one, "DoneBytes"), integer_of(one, "TotalBytes"),
                            truth_of(one, "Finished")});
  return job;
}

int64_t JobView::hosts_wanted() const {
  int64_t hosts = 0;
  for (const auto& group : groups) hosts += group.count;
  return hosts;
}

const std::string& JobView::reason() const {
  return !wait_reason.empty()      ? wait_reason
         : !failure_reason.empty() ? failure_reason
                                   : status_reason;
}

Result<std::vector<JobView>> job_views(const Json& answer) {
  std::vector<JobView> jobs;
  for (const Json& json : list_of(answer, "Jobs")) jobs.push_back(TRY(job_view(json)));
  return jobs;
}

std::string cost_text(const JobView& job) {
  if (job.currency.empty()) return "";
  std::string text = domain::money_text(job.cost_millionths) + " " + job.currency;
  if (!job.unpriced.empty()) text += " + ?";
  if (job.spot && job.on_demand_millionths > 0 && job.on_demand_millionths > job.cost_millionths)
    text +=
        " (-" + percent(1 - double(job.cost_millionths) / double(job.on_demand_millionths)) + ")";
  return text;
}

std::string hosts_text(const JobView& job) {
  std::string text;
  for (const auto& group : job.groups)
    text += (text.empty() ? "" : " + ") + std::to_string(group.count) + " x " + group.instance_type;
  return text;
}

std::string array_text(const ArrayView& array) {
  const int64_t pending = array.size - array.running - array.succeeded - array.failed;
  const std::string of_all = " of " + std::to_string(array.size);
  const std::string succeeded = std::to_string(array.succeeded);
  std::string text;
  if (array.running > 0)
    text = "Running " + std::to_string(array.running) + of_all;
  else if (pending > 0)
    text = "Pending " + std::to_string(pending) + of_all;
  else
    text = succeeded + of_all + " succeeded";
  if (array.running + pending > 0 && array.succeeded > 0) text += ", " + succeeded + " succeeded";
  if (array.failed > 0) text += ", " + std::to_string(array.failed) + " failed";
  return text;
}

std::string status_text(const JobView& job) {
  if (job.array) return job.status + " " + array_text(*job.array);
  const bool more = !job.secondary_status.empty() && job.secondary_status != job.status;
  return job.status + (more ? " " + job.secondary_status : "");
}

namespace {

// The number of the child that this job of an array is; "" for other jobs.
std::string child_part(const JobView& job) {
  return job.is_child() ? job.name.substr(job.name.find(':')) : "";
}

}  // namespace

std::string label_of(const JobView& job) {
  return job.display_name.empty() ? job.name : job.display_name + child_part(job);
}

std::string label_with_id(const JobView& job) {
  return label_of(job) + (job.of_batch() ? " (" + job.name + ")" : "");
}

Paint paint_of_status(const std::string& status) {
  if (status == "Completed") return Paint::green;
  if (status == "Failed") return Paint::red;
  if (status == "Stopped" || status == "Stopping" || status == "MaxRuntimeExceeded" ||
      status == "MaxWaitTimeExceeded" || status == "Interrupted")
    return Paint::yellow;
  return Paint::none;
}

Paint paint_of_job(const JobView& job) {
  const Paint how = paint_of_status(job.finished() ? job.status : job.secondary_status);
  return !job.finished() && how == Paint::none ? Paint::cyan : how;
}

namespace {

const std::vector<Column>& jobs_columns() {
  static const std::vector<Column> kColumns{
      {.title = "name", .width_min = kJobNameWidthMin, .overflow = Overflow::middle},
      {.title = "id"},  // names of Batch jobs are not unique
      {.title = "region", .drop = 1},
      {.title = "status", .width_min = kStatusWidthMin, .overflow = Overflow::wrap},
      {.title = "hosts", .width_min = kNameWidthMin, .drop = 5},
      {.title = "age", .right = true, .drop = 2},
      {.title = "ran", .right = true, .drop = 3},
      {.title = "cost", .right = true, .drop = 4},
      {.title = "why",
       .width_min = kReasonWidthMin,
       .drop = 6,
       .overflow = Overflow::wrap,
       .below = true,
       .lines_max = 2}};  // describe has the whole
  return kColumns;
}

}  // namespace

std::vector<std::string> short_ids(const std::vector<std::string>& names) {
  constexpr size_t kUuidBytes = 36;
  const auto is_uuid = [](const std::string& id) {
    return id.size() == kUuidBytes &&
           id.find_first_not_of("0123456789abcdef-") == std::string::npos;
  };
  // A child is named like its array, with a suffix: only the ids themselves must differ.
  std::set<std::string> ids;
  for (const auto& name : names)
    if (const auto id = name.substr(0, name.find_first_of(":#")); is_uuid(id)) ids.insert(id);
  const auto is_unique = [&](const std::string& prefix) {
    const auto first = ids.lower_bound(prefix);
    return std::next(first) == ids.end() || !std::next(first)->starts_with(prefix);
  };
  std::vector<std::string> shortened;
  for (const auto& name : names) {
    const auto id = name.substr(0, name.find_first_of(":#"));
    size_t bytes = is_uuid(id) ? kShortIdBytesMin : id.size();
    while (bytes < id.size() && !is_unique(id.substr(0, bytes))) ++bytes;
    shortened.push_back(id.substr(0, bytes) + name.substr(id.size()));
  }
  return shortened;
}

std::string jobs_table(const OutputStyle& style, const std::vector<JobView>& jobs, Instant now) {
  std::vector<std::string> ids;
  for (const JobView& job : jobs) ids.push_back(job.name);
  if (style.columns > 0) ids = short_ids(ids);
  std::vector<std::vector<Cell>> rows;
  for (size_t i = 0; i < jobs.size(); ++i) {
    const JobView& job = jobs[i];
    const std::string took =
        job.started ? duration_text(job.ended.value_or(now) - *job.started) : "";
    rows.push_back({{label_of(job), job.finished() ? Paint::none : Paint::bold},
                    {job.display_name.empty() ? "" : ids[i], Paint::dim},
                    {job.region},
                    {status_text(job), paint_of_job(job)},
                    {hosts_text(job)},
                    {job.created ? duration_text(now - *job.created) : "", Paint::dim},
                    {took},
                    {cost_text(job)},
                    {job.reason(), Paint::dim}});
  }
  return table(style, jobs_columns(), rows);
}

namespace {

// Formats the first line of a page, or two if they do not fit into one: the id and the status.
std::string head_of(const OutputStyle& style, const JobView& job) {
  const std::string second = job.array                            ? array_text(*job.array)
                             : job.secondary_status == job.status ? ""
                                                                  : job.secondary_status;
  const std::string status = job.status + (second.empty() ? "" : " (" + second + ")");
  const std::string name = plain_text(job.name);
  const bool fits = style.columns <= 0 || width_of(name) + 2 + width_of(status) <= style.columns;
  return paint(style, Paint::bold, name) + (fits ? "  " : "\n") +
         paint(style, paint_of_status(job.finished() ? job.status : job.secondary_status), status) +
         "\n";
}

}  // namespace

std::string job_page(const OutputStyle& style, const JobView& job, const Json& described,
                     Instant now) {
  Page page(style);
  page.block(head_of(style, job));
  page.line("why", job.wait_reason, Paint::yellow);
  page.line("failed", job.failure_reason, Paint::red);
  if (job.status_reason != job.wait_reason) page.line("reason", job.status_reason, Paint::yellow);
  page.line("note", job.note);
  for (const std::string& note : job.notes) page.line("note", note);
  page.line("hosts", hosts_text(job));
  if (const Json* algorithm = member(described, "AlgorithmSpecification"))
    page.line("image", string_or(*algorithm, "TrainingImage"));
  page.line("role", string_or(described, "RoleArn"));
  if (job.of_batch()) add_batch(page, job, described);
  page.line("user", job.user);
  if (job.created)
    page.line("created",
              time_text(*job.created) + " (" + duration_text(now - *job.created) + " ago)");
  if (job.started)
    page.line("ran",
              duration_text(job.ended.value_or(now) - *job.started) + ", " +
                  std::to_string(job.billable_seconds) + " s billable of " +
                  std::to_string(job.training_seconds) + " s" +
                  (job.attempts > 1 ? ", " + counted(uint64_t(job.attempts), "attempt") : ""));
  page.line("cost", cost_text(job) +
                        (job.unpriced.empty() ? "" : ", no price for " + job.unpriced.front()));
  std::string tags;
  for (const auto& [key, value] : job.tags) tags += (tags.empty() ? "" : ", ") + key + "=" + value;
  page.line("tags", tags);
  if (const Json* parameters = member(described, "HyperParameters");
      parameters && parameters->is_object()) {
    std::string text;
    for (const auto& [key, value] : parameters->items())
      text += (text.empty() ? "" : ", ") + key + "=" +
              (value.is_string() ? value.get<std::string>() : dump(value));
    page.line("parameters", text);
  }
  add_timeline(page, style, job, described, now);
  add_hosts(page, style, job, now);
  if (const std::string activity = activity_table(style, job); !activity.empty()) {
    page.heading("Activity");
    for (const HostView& host : job.hosts)
      for (const FaultView& fault : host.faults) page.line("fault", fault.message, Paint::yellow);
    page.block(activity);
  }
  add_channels(page, style, described);
  add_metrics(page, style, job);
  add_links(page, job, described);
  return page.text();
}

}  // namespace trainyard::cli
