#include "cli/batch_log.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "base/text.hpp"

namespace trainyard::cli {
namespace {

using client::Service;

constexpr const char* kBatchGroup = "/aws/batch/job";
constexpr size_t kDescribedMax = 100;  // of DescribeJobs, as AWS
constexpr size_t kLabelBytesMax = 24;  // of the job's name before each line
// Children described in a round, with five requests a second. Children start in the order of their
// index, so the running ones are among the first unfinished ones.
constexpr size_t kRoundChildrenMax = 500;

const Json* object_at(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found == json.end() || !found->is_object() ? nullptr : &*found;
}

Result<Json> describe_jobs(client::Client& client, const std::vector<std::string>& ids) {
  const Json answer = TRY(client.call(Service::batch, "DescribeJobs", {{"jobs", ids}}));
  return answer.value("jobs", Json::array());
}

bool has_ended(const Json& detail) {
  const std::string status = detail.value("status", "");
  return status == "SUCCEEDED" || status == "FAILED";
}

std::string label_before(const JobView& job, const std::string& part) {
  return shorten(job.display_name, kLabelBytesMax) + part;
}

// The part of an id that names a child or a node: ":7", "#1"; "" for other jobs.
std::string part_of(const std::string& id) {
  const size_t mark = id.find_first_of(":#");
  return mark == std::string::npos ? "" : id.substr(mark);
}

class BatchJobLog final : public LogFollower {
 public:
  BatchJobLog(client::Client& client, const JobView& job, const LogChoice& choice)
      : client_(client), job_(job), reader_(client, choice.since) {
    const int64_t hosts = job.hosts_wanted();
    if (choice.host && hosts > 1) {
      ids_ = {job.name + "#" + std::to_string(*choice.host)};
    } else if (hosts > 1) {
      for (int64_t node = 0; node < hosts; ++node)
        ids_.push_back(job.name + "#" + std::to_string(node));
    } else {
      // The second id exists only for a multi-node parallel job of one node.
      ids_ = {job.name, job.name + "#0"};
    }
  }

  Result<void> round(bool, const LineSink& each) override {
    for (size_t first = 0; first < ids_.size(); first += kDescribedMax) {
      const auto begin = ids_.begin() + ptrdiff_t(first);
      const auto end = begin + ptrdiff_t(std::min(kDescribedMax, ids_.size() - first));
      for (const Json& detail : TRY(describe_jobs(client_, {begin, end}))) {
        if (object_at(detail, "nodeProperties")) continue;  // its nodes have the logs
        for (const LogSource& source :
             log_sources(detail, label_before(job_, part_of(detail.value("jobId", "")))))
          reader_.mark_unread(source);
      }
    }
    return reader_.drain(each);
  }
  int widest() const override { return reader_.widest(); }

 private:
  client::Client& client_;
  const JobView job_;
  LogReader reader_;
  std::vector<std::string> ids_;
};

class ArrayLog final : public LogFollower {
 public:
  ArrayLog(client::Client& client, const JobView& job, const LogChoice& choice)
      : client_(client), job_(job), reader_(client, choice.since) {
    for (int64_t index = 0; index < job.array->size; ++index) left_.insert(index);
  }

  Result<void> round(bool ended, const LineSink& each) override {
    if (!std::exchange(begun_, true)) {
      TRY(read_alternately(TRY(failed_children()), each));
      return read_alternately({left_.begin(), left_.end()}, each);
    }
    std::vector<int64_t> children(left_.begin(), left_.end());
    if (!ended && children.size() > kRoundChildrenMax) children.resize(kRoundChildrenMax);
    std::vector<LogSource> over;
    for (const Child& child : TRY(describe(children))) {
      for (const LogSource& source : child.sources) reader_.mark_unread(source);
      if (!child.ended) continue;
      over.insert(over.end(), child.sources.begin(), child.sources.end());
      left_.erase(child.index);
    }
    TRY(reader_.drain(each));
    for (const LogSource& source : over) reader_.forget(source);
    return {};
  }
  int widest() const override { return reader_.widest(); }

 private:
  struct Child {
    int64_t index = 0;
    bool ended = false;
    std::vector<LogSource> sources;
  };

  Result<std::vector<int64_t>> failed_children() {
    std::vector<int64_t> failed;
    Json question{{"arrayJobId", job_.name}, {"jobStatus", "FAILED"}};
    for (;;) {
      const Json page = TRY(client_.call(Service::batch, "ListJobs", question));
      for (const Json& child : page.value("jobSummaryList", Json::array()))
        if (const Json* array = object_at(child, "arrayProperties"))
          failed.push_back(array->value("index", int64_t(0)));
      const std::string next = page.value("nextToken", "");
      if (next.empty()) return failed;
      question["nextToken"] = next;
    }
  }

  Result<std::vector<Child>> describe(const std::vector<int64_t>& children) {
    std::vector<Child> seen;
    for (size_t first = 0; first < children.size(); first += kDescribedMax) {
      std::vector<std::string> ids;
      for (size_t i = first; i < std::min(children.size(), first + kDescribedMax); ++i)
        ids.push_back(job_.name + ":" + std::to_string(children[i]));
      for (const Json& detail : TRY(describe_jobs(client_, ids))) {
        const std::string part = part_of(detail.value("jobId", ""));
        const auto index = parse_int(part.empty() ? "" : part.substr(1));
        if (!index) continue;
        seen.push_back({*index, has_ended(detail), log_sources(detail, label_before(job_, part))});
      }
    }
    return seen;
  }

  // Prints the lines of each child so far, one child after the other.
  Result<void> read_alternately(const std::vector<int64_t>& children, const LineSink& each) {
    for (size_t first = 0; first < children.size(); first += kDescribedMax) {
      const auto begin = children.begin() + ptrdiff_t(first);
      const auto end = begin + ptrdiff_t(std::min(kDescribedMax, children.size() - first));
      for (const Child& child : TRY(describe({begin, end}))) {
        for (const LogSource& source : child.sources) reader_.mark_unread(source);
        TRY(reader_.drain(each));
        if (!child.ended) continue;
        for (const LogSource& source : child.sources) reader_.forget(source);
        left_.erase(child.index);
      }
    }
    return {};
  }

  client::Client& client_;
  const JobView job_;
  LogReader reader_;
  std::set<int64_t> left_;  // children whose logs may grow
  bool begun_ = false;
};

}  // namespace

std::vector<LogSource> log_sources(const Json& job_detail, const std::string& label) {
  std::string group = kBatchGroup;
  std::vector<LogSource> sources;
  const auto add = [&](const Json& container) {
    const std::string stream = container.value("logStreamName", "");
    const bool known = std::ranges::any_of(
        sources, [&](const LogSource& source) { return source.stream == stream; });
    if (!stream.empty() && !known) sources.push_back({group, stream, label});
  };
  const Json* container = object_at(job_detail, "container");
  if (container)
    if (const Json* logging = object_at(*container, "logConfiguration"))
      if (const Json* options = object_at(*logging, "options"))
        group = options->value("awslogs-group", group);
  if (group.empty()) group = kBatchGroup;
  for (const Json& attempt : job_detail.value("attempts", Json::array()))
    if (const Json* of_attempt = object_at(attempt, "container")) add(*of_attempt);
  if (container) add(*container);
  return sources;
}

std::unique_ptr<LogFollower> follow_batch_job(client::Client& client, const JobView& job,
                                              const LogChoice& choice) {
  return std::make_unique<BatchJobLog>(client, job, choice);
}

std::unique_ptr<LogFollower> follow_array(client::Client& client, const JobView& job,
                                          const LogChoice& choice) {
  return std::make_unique<ArrayLog>(client, job, choice);
}

}  // namespace trainyard::cli
