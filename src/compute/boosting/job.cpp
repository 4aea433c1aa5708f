// The hosts of a job have two kinds of connections: a group, over which they compare what they have
// read, agree when to stop, and name a host that fails; and the library's own, over which it adds
// histograms. When the library loses a connection, its error does not name the host. The group's
// does.
#include "boosting/job.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/plural.hpp"
#include "base/text.hpp"
#include "boosting/failures.hpp"
#include "boosting/job_config.hpp"
#include "boosting/library/communicator.hpp"
#include "boosting/library/library_call.hpp"
#include "boosting/model_files.hpp"
#include "boosting/shares.hpp"
#include "boosting/training/checkpoints.hpp"
#include "boosting/training/cross_validation.hpp"
#include "boosting/training/trainer.hpp"
#include "collectives/stop_limit.hpp"
#include "os/files.hpp"
#include "rabit/tracker.hpp"

namespace trainyard::boosting {
namespace {

using collectives::Group;

struct Tables {
  Table train;
  std::optional<Table> validation;
};

struct Matrices {
  DataMatrix train;
  std::optional<DataMatrix> validation;
};

// BoostingJob runs one host's part of a job. The options, the group and the output outlive it.
class BoostingJob {
 public:
  BoostingJob(const BoostingJobOptions& options, const BoostingConfig& config, Group& group,
              Clock& clock, const std::atomic<bool>& stop, const Print& print)
      : options_(options),
        config_(config),
        settings_(config.settings),
        host_(config.resources.current_host),
        group_(group),
        clock_(clock),
        stop_(stop),
        print_(print) {}

  Result<void> run() {
    Tables tables = TRY(read_tables());
    const Agreement agreement = TRY(compare(tables));
    if (agreement.stopped) {
      print_("stopped before the first round");
      return ok();
    }
    print_sizes(tables, agreement);
    auto matrices = TRY(make_matrices(std::move(tables), agreement.columns));
    TRY(connect().in("connecting the hosts"));
    auto done = train(matrices);
    // Hosts that wait for this one in the library now fail.
    communicator_.reset();
    if (!done) return explain(std::move(done).error());
    return group_.barrier().in("ending the training on all hosts");
  }

 private:
  bool is_first() const { return group_.rank() == 0; }

  Result<Tables> read_tables() {
    Tables tables;
    const ChannelPlan& train = config_.channels.at("train");
    tables.train = TRY(read_table(train.source, train.decoder, stop_).in("channel train"));
    if (!config_.channels.contains("validation")) return tables;
    ChannelPlan plan = config_.channels.at("validation");
    if (plan.decoder.memory > 0) {
      const uint64_t used = training_bytes(tables.train, train.decoder.training);
      plan.decoder.memory =
          std::max<uint64_t>(1, plan.decoder.memory - std::min(used, plan.decoder.memory));
    }
    tables.validation = TRY(read_table(plan.source, plan.decoder, stop_).in("channel validation"));
    return tables;
  }

  Result<Agreement> compare(const Tables& tables) {
    HostShare own;
    own.train = share_of(tables.train);
    own.stopped = stop_;
    own.has_validation = tables.validation.has_value();
    if (tables.validation) own.validation = share_of(*tables.validation);
    std::vector<HostShare> shares;
    for (const std::string& text : TRY(group_.all_gather(encode(own))))
      shares.push_back(TRY(decode_share(text)));
    return agree(shares, config_.resources.hosts);
  }

  void print_sizes(const Tables& tables, const Agreement& agreement) {
    print_("Train matrix has " + std::to_string(tables.train.rows()) + " rows and " +
           std::to_string(agreement.columns) + " columns");
    if (tables.validation)
      print_("Validation matrix has " + std::to_string(tables.validation->rows()) + " rows");
    if (is_first() && group_.size() > 1)
      print_("channel train: " + counted(agreement.rows, "row") + " on all hosts");
  }

  Result<Matrices> make_matrices(Tables tables, uint64_t columns) {
    MatrixOptions options;
    options.threads = options_.cpus;
    options.has_bounds = settings_.objective == "survival:aft";
    options.has_groups = settings_.objective.starts_with("rank:");
    options.columns = columns;
    if (settings_.folds > 0 && tables.validation) {
      if (tables.validation->is_sparse != tables.train.is_sparse)
        return invalid("Hyperparameter _kfold: the channels train and validation have two formats");
      append(tables.train, *std::exchange(tables.validation, std::nullopt));
    }
    Matrices matrices{TRY(DataMatrix::make(std::move(tables.train), options).in("channel train")),
                      {}};
    if (tables.validation)
      matrices.validation =
          TRY(DataMatrix::make(*std::move(tables.validation), options).in("channel validation"));
    return matrices;
  }

  // Starts the tracker if this is the first host, and joins it.
  Result<void> connect() {
    if (group_.size() == 1) return ok();
    const auto& hosts = config_.resources.hosts;
    if (is_first()) {
      rabit::TrackerOptions tracker;
      tracker.endpoint = {hosts[0], kTrackerPort};
      tracker.workers = group_.size();
      tracker_ = TRY(rabit::Tracker::start(std::move(tracker), clock_));
    }
    TRY(group_.barrier());
    communicator_ = TRY(Communicator::join({hosts[0], kTrackerPort, task_id()}));
    return ok();
  }

  // Orders the library's ranks like the hosts, also with more than nine hosts.
  std::string task_id() const {
    std::string number = std::to_string(config_.rank);
    return std::string(5 - std::min<size_t>(5, number.size()), '0') + number + "-" + host_;
  }

  TrainerOptions trainer_options() {
    TrainerOptions trainer{settings_, group_, stop_, print_, options_.cpus, {}};
    if (!config_.checkpoints.empty())
      trainer.save_checkpoint = [this](int64_t round, const std::string& model) {
        return Checkpoints(config_.checkpoints).save(round, model);
      };
    return trainer;
  }

  Result<void> train(const Matrices& matrices) {
    if (settings_.folds > 0) return train_folds(matrices.train);
    const TrainingStart start = TRY(find_start());
    auto trained = train_model(trainer_options(), matrices.train,
                               matrices.validation ? &*matrices.validation : nullptr, start);
    if (!trained) return std::move(trained).error();
    if (trained->stopped && is_first())
      print_("stopped after round " + std::to_string(trained->rounds - 1));
    if (!is_first() || (trained->stopped && !settings_.saves_on_termination)) return ok();
    return save(kModelFile, trained->model);
  }

  Result<void> train_folds(const DataMatrix& rows) {
    auto models = TRY(cross_validate(trainer_options(), rows));
    if (!is_first()) return ok();
    for (size_t i = 0; i < models.size(); ++i) TRY(save(model_file_of_fold(i), models[i].model));
    return ok();
  }

  Result<void> save(const std::string& name, const std::string& model) {
    const std::string path = options_.base + "/model/" + name;
    TRY(os::write_file(path, model).in("saving the model"));
    print_("saved the model in " + path);
    return ok();
  }

  // Returns the start of the training: the first host reads the checkpoint, or the model of the
  // channel, and sends it to all.
  Result<TrainingStart> find_start() {
    TrainingStart start;
    if (is_first()) start = TRY(read_start());
    std::array<uint64_t, 2> sizes = {start.model.size(), uint64_t(start.rounds_done)};
    TRY(group_.broadcast(std::as_writable_bytes(std::span(sizes)), 0));
    if (sizes[0] > kModelBytesMax || sizes[1] > INT32_MAX)
      return corrupt("the first host sent an invalid model");
    start.model.resize(sizes[0]);
    start.rounds_done = int64_t(sizes[1]);
    if (sizes[0] > 0) TRY(group_.broadcast(std::as_writable_bytes(std::span(start.model)), 0));
    return start;
  }

  Result<TrainingStart> read_start() {
    for (const Checkpoint& each : TRY(Checkpoints(config_.checkpoints).list())) {
      auto model = os::read_file(each.path, kModelBytesMax);
      auto booster = TRY(Booster::make({}));
      if (!model || !booster.load(*model)) {
        print_("Wrong checkpoint model format " + each.path);
        continue;
      }
      print_("Checkpoint loaded from " + each.path);
      print_("Resuming from iteration " + std::to_string(each.round + 1));
      return TrainingStart{*std::move(model), each.round + 1};
    }
    if (config_.model_directory.empty()) return TrainingStart{};
    const std::string path = config_.model_directory + "/" + std::string(kModelFile);
    TrainingStart start{TRY(os::read_file(path, kModelBytesMax).in("channel model")), 0};
    auto booster = TRY(Booster::make({}));
    TRY(booster.load(start.model).in("channel model: " + std::string(kModelFile)));
    print_("training continues from the model of the channel model");
    return start;
  }

  // Returns the cause of an error of the library: the error of another host, or the host that has
  // ended.
  Error explain(Error error) {
    if (!error.is(LibraryFault::call)) return error;
    Error own = training_failure(std::move(error));
    if (group_.size() == 1) return own;
    auto messages = group_.all_gather(own.message);
    if (!messages) return std::move(messages).error().in("training has lost a host");
    own.message = first_cause(*messages);
    return own;
  }

  const BoostingJobOptions& options_;
  const BoostingConfig& config_;
  const BoostingSettings& settings_;
  const std::string host_;
  Group& group_;
  Clock& clock_;
  const std::atomic<bool>& stop_;
  const Print& print_;
  std::unique_ptr<rabit::Tracker> tracker_;  // of the first of several hosts
  std::unique_ptr<Communicator> communicator_;
};

Result<void> join_and_train(const BoostingJobOptions& options, Clock& clock,
                            const std::atomic<bool>& stop, const Print& print) {
  const BoostingConfig config = TRY(read_boosting_config(options.base, options.memory));
  collectives::TcpOptions tcp;
  for (const std::string& host : config.resources.hosts)
    tcp.endpoints.push_back({host, kBoostingPort});
  tcp.rank = config.rank;
  tcp.peer_timeout = kBoostingPeerTimeout;
  tcp.group.activity = {options.activity, config.rank};
  tcp.group.deterministic = true;
  tcp.shared_value = options.shared_value.substr(0, collectives::TcpOptions::kSharedValueBytesMax);
  collectives::StopLimit limit(stop, clock, kBoostingStopTimeout);
  tcp.cancelled = [&] { return limit.is_exceeded(); };
  auto group = collectives::join_over_tcp(std::move(tcp));
  limit.joined();
  if (!group && stop) {
    print("stopped before the first round");
    return ok();
  }
  if (!group) return std::move(group).error();
  auto done = BoostingJob(options, config, **group, clock, stop, print).run();
  // Makes the other ranks fail at once, with the same message.
  if (!done) (*group)->abandon(done.error().message);
  return done;
}

}  // namespace

Result<void> run_boosting_job(const BoostingJobOptions& options, Clock& clock,
                              const std::atomic<bool>& stop, const Print& print) {
  auto done = join_and_train(options, clock, stop, print);
  if (!done) {
    const std::string output = options.base + "/output";
    const std::string why = shorten(failure_text_of(done.error()), contract::kFailureCharactersMax);
    auto written = os::make_directories(output);
    if (written) written = os::write_file(output + "/failure", why);
    if (!written) print("writing the failure file: " + written.error().message);
  }
  return done;
}

}  // namespace trainyard::boosting
