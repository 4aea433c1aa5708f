#include "forest/job.hpp"

#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/plural.hpp"
#include "base/text.hpp"
#include "collectives/stop_limit.hpp"
#include "contract/contract.hpp"
#include "forest/metrics.hpp"
#include "forest/model_file.hpp"
#include "forest/rows/channel.hpp"
#include "forest/sample.hpp"
#include "forest/score_rows.hpp"
#include "forest/settings.hpp"
#include "os/files.hpp"

namespace trainyard::forest {
namespace {

using Print = std::function<void(std::string_view line)>;
using collectives::Group;

constexpr size_t kConfigBytesMax = 1 << 20;  // AWS allows 100 hyperparameters of 2,500 characters

struct JobConfig {
  ForestSettings settings;
  contract::Resources resources;
  int rank = 0;
  std::map<std::string, ChannelOptions> channels;
};

Result<ChannelOptions> channel_options(const std::string& base,
                                       const contract::ChannelConfig& given,
                                       const JobConfig& config) {
  if (given.name != "train" && given.name != "test")
    return invalid("Additional properties are not allowed ('" + given.name +
                   "' was unexpected): channels are train and test");
  ChannelOptions channel;
  channel.data = base + "/input/data";
  channel.name = given.name;
  channel.is_pipe = given.input_mode == "Pipe";
  channel.is_sharded = given.distribution == "ShardedByS3Key";
  channel.rank = config.rank;
  channel.ranks = int(config.resources.hosts.size());
  channel.dimensions = config.settings.forest.dimensions;
  channel.format = TRY(parse_content_type(given.content_type).in("channel " + given.name));
  if (given.name != "test") return channel;
  if (!channel.format.has_label)
    return invalid("channel test: rows need labels: the content type is text/csv;label_size=1");
  if (channel.is_sharded && channel.ranks > 1)
    return invalid("channel test: 'ShardedByS3Key' is not one of ['FullyReplicated']");
  channel.rank = 0;  // the first host scores all rows
  channel.ranks = 1;
  return channel;
}

Result<JobConfig> read_config(const std::string& base) {
  const auto read = [&](const char* name) {
    return os::read_file(base + "/input/config/" + name, kConfigBytesMax);
  };
  JobConfig config;
  config.resources = TRY(contract::read_resources(TRY(read("resourceconfig.json"))));
  config.settings = TRY(parse_forest_settings(
      TRY(contract::read_hyperparameters(TRY(read("hyperparameters.json"))))));
  const auto& hosts = config.resources.hosts;
  config.rank =
      int(std::find(hosts.begin(), hosts.end(), config.resources.current_host) - hosts.begin());
  for (const auto& each : TRY(contract::read_channels(TRY(read("inputdataconfig.json")))))
    config.channels[each.name] = TRY(channel_options(base, each, config));
  if (!config.channels.contains("train")) return invalid("'train' is a required property");
  return config;
}

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6f", value);
  return text;
}

// ForestJob runs one host's part of a job. The options, the group and the output outlive it.
class ForestJob {
 public:
  ForestJob(const ForestJobOptions& options, const JobConfig& config, Group& group,
            const std::atomic<bool>& stop, const Print& print)
      : options_(options),
        config_(config),
        host_(config.resources.current_host),
        group_(group),
        stop_(stop),
        print_(print) {}

  Result<void> run() {
    if (group_.rank() == 0) print_parameters();
    Sampler sampler = TRY(read_train().in("channel train"));
    auto sample = TRY(gather_sample(sampler, group_).in("drawing the sample"));
    if (!sample) return ok();  // the first host trains
    print_("channel train: " + counted(sample->rows, "row") + " on all hosts");
    if (sample->points.empty()) {
      if (!stop_) return invalid("channel train: the channel has no rows");
      print_("stopped before the first row");
      return ok();
    }
    sampler = Sampler(config_.settings.forest);  // frees the memory of the rows
    const Forest forest =
        Forest::from_sample(config_.settings.forest, sample->points, std::move(sample->trees),
                            sample->rows, size_t(options_.cpus));
    const std::string path = options_.base + "/model/" + std::string(kForestFile);
    TRY(os::write_file(path, encode_forest(forest)).in("saving the model"));
    print_("saved the model in " + path);
    if (config_.channels.contains("test") && !stop_) TRY(test(forest).in("channel test"));
    print_("#progress_metric: host=" + host_ + ", completed 100 %");
    return ok();
  }

 private:
  void print_parameters() {
    const ForestOptions& forest = config_.settings.forest;
    print_("feature_dim: " + std::to_string(forest.dimensions));
    print_("num_trees: " + std::to_string(forest.trees));
    print_("num_samples_per_tree: " + std::to_string(forest.samples_per_tree));
  }

  Result<Sampler> read_train() {
    Sampler sampler(config_.settings.forest, options_.memory);
    const ChannelEnd end =
        TRY(read_channel(config_.channels.at("train"), stop_,
                         [&](RowId row, std::span<const float> features, std::optional<double>) {
                           return sampler.offer(row, features);
                         }));
    if (end.rows == 0 && !end.stopped)
      return invalid("host " + host_ +
                     " has no rows: the channel needs at least one object with rows for each host");
    print_("channel train: " + counted(end.taken, "row") + " read by host " + host_ +
           (end.stopped ? " until it was stopped" : ""));
    return sampler;
  }

  Result<void> test(const Forest& forest) {
    RowScorer scorer(forest, size_t(options_.cpus));
    std::vector<ScoredRow> rows;
    const auto take = [&](double score, double label) { rows.push_back({score, label != 0}); };
    const ChannelEnd end = TRY(read_channel(
        config_.channels.at("test"), stop_,
        [&](RowId, std::span<const float> features, std::optional<double> label) -> Result<void> {
          if (!label) return invalid("a record has no label named 'values'");
          if (*label != 0 && *label != 1)
            return invalid("the label " + number(*label) +
                           " is out of range: 1 is an anomaly, 0 a normal row");
          return scorer.add(features, *label, take);
        }));
    if (end.stopped) return ok();  // the model is already saved
    TRY(scorer.finish(take));
    if (rows.empty()) return invalid("the channel has no rows");
    print_("channel test: " + counted(rows.size(), "row"));
    print_metrics(evaluate(std::move(rows)));
    return ok();
  }

  void print_metrics(const Evaluation& evaluation) {
    const auto print = [&](const char* name, double value) {
      print_("#quality_metric: host=" + host_ + ", test " + name + " <score>=" + number(value));
    };
    print_("threshold of scores: " + number(evaluation.threshold) +
           ", three standard deviations above the mean");
    if (config_.settings.has_accuracy) print("accuracy", evaluation.accuracy());
    if (!config_.settings.has_fscore) return;
    const Evaluation normal = evaluation_of_normal_rows(evaluation);
    print("precision", evaluation.precision());
    print("recall", evaluation.recall());
    print("f1", evaluation.f1());
    print("negative_precision", normal.precision());
    print("negative_recall", normal.recall());
    print("negative_f1", normal.f1());
  }

  const ForestJobOptions& options_;
  const JobConfig& config_;
  const std::string host_;
  Group& group_;
  const std::atomic<bool>& stop_;
  const Print& print_;
};

Result<void> join_and_train(const ForestJobOptions& options, Clock& clock,
                            const std::atomic<bool>& stop, const Print& print) {
  const JobConfig config = TRY(read_config(options.base));
  collectives::TcpOptions tcp;
  for (const std::string& host : config.resources.hosts)
    tcp.endpoints.push_back({host, kForestPort});
  tcp.rank = config.rank;
  tcp.peer_timeout = kForestPeerTimeout;
  tcp.group.activity = {options.activity, config.rank};
  tcp.group.deterministic = true;
  tcp.shared_value = options.shared_value.substr(0, collectives::TcpOptions::kSharedValueBytesMax);
  collectives::StopLimit limit(stop, clock, kForestStopTimeout);
  tcp.cancelled = [&] { return limit.is_exceeded(); };
  auto group = collectives::join_over_tcp(std::move(tcp));
  limit.joined();
  if (!group && stop) {
    print("stopped before the first row");
    return ok();
  }
  if (!group) return std::move(group).error();
  auto done = ForestJob(options, config, **group, stop, print).run();
  // Makes the other ranks fail at once, with the same message.
  if (!done) (*group)->abandon(done.error().message);
  return done;
}

}  // namespace

Result<void> run_forest_job(const ForestJobOptions& options, Clock& clock,
                            const std::atomic<bool>& stop, const Print& print) {
  auto done = join_and_train(options, clock, stop, print);
  if (!done) {
    const std::string output = options.base + "/output";
    const std::string why = shorten(done.error().message, contract::kFailureCharactersMax);
    auto written = os::make_directories(output);
    if (written) written = os::write_file(output + "/failure", why);
    if (!written) print("writing the failure file: " + written.error().message);
  }
  return done;
}

}  // namespace trainyard::forest
