#include "cli/log_follower.hpp"

#include "cli/batch_log.hpp"

namespace trainyard::cli {
namespace {

using client::Service;

constexpr const char* kGroup = "/aws/sagemaker/TrainingJobs";

// Follows the hosts of a training job. A stream is read only if its summary shows that it has
// grown.
class TrainingLog final : public LogFollower {
 public:
  TrainingLog(client::Client& client, const std::string& job, const LogChoice& choice)
      : client_(client),
        prefix_(job + "/" + (choice.host ? "algo-" + std::to_string(*choice.host + 1) + "-" : "")),
        reader_(client, choice.since) {}

  Result<void> round(bool, const LineSink& each) override {
    TRY(look());
    return reader_.drain(each);
  }
  int widest() const override { return reader_.widest(); }

 private:
  struct Mark {
    int64_t stored_bytes = -1;
    int64_t last_ingestion = -1;
    auto operator<=>(const Mark&) const = default;
  };

  Result<void> look() {
    auto answer = client_.call(Service::logs, "DescribeLogStreams",
                               {{"logGroupName", kGroup}, {"logStreamNamePrefix", prefix_}});
    if (!answer && answer.error().kind == Kind::not_found) return {};  // no job has started yet
    const Json streams = TRY(std::move(answer));
    for (const Json& stream : streams.value("logStreams", Json::array())) {
      const std::string name = stream.value("logStreamName", "");
      const Mark mark{stream.value("storedBytes", int64_t(0)),
                      stream.value("lastIngestionTime", int64_t(0))};
      if (const auto known = marks_.find(name); known != marks_.end() && known->second == mark)
        continue;
      marks_[name] = mark;
      reader_.mark_unread({kGroup, name, host_of_stream(name)});
    }
    return {};
  }

  client::Client& client_;
  const std::string prefix_;
  LogReader reader_;
  std::map<std::string, Mark> marks_;
};

}  // namespace

Result<std::unique_ptr<LogFollower>> follow_log(client::Client& client, const JobView& job,
                                                const LogChoice& choice) {
  if (!job.of_batch())
    return std::unique_ptr<LogFollower>(std::make_unique<TrainingLog>(client, job.name, choice));
  if (job.array && choice.host)
    return invalid("array '" + job.name + "' has children, not hosts; write " + job.name +
                   ":INDEX");
  if (job.array) return follow_array(client, job, choice);
  return follow_batch_job(client, job, choice);
}

}  // namespace trainyard::cli
