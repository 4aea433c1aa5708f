#include "algorithms/image_classification/job.hpp"

#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <utility>

#include "algorithms/image_classification/model_file.hpp"
#include "algorithms/image_classification/trainer.hpp"
#include "base/text.hpp"
#include "collectives/stop_limit.hpp"
#include "contract/contract.hpp"
#include "os/files.hpp"

namespace trainyard::algorithms {
namespace {

using Print = std::function<void(std::string_view line)>;
using collectives::Group;

constexpr size_t kConfigBytesMax = 1 << 20;  // AWS allows 100 hyperparameters of 2,500 characters
constexpr std::string_view kRecords = "application/x-recordio";
constexpr std::string_view kImage = "application/x-image";
constexpr int64_t kPixelsOfThreadMin = 32'768;  // 32 images of 32 x 32 pixels
constexpr uint64_t kSeed = 1;  // SageMaker's algorithm has no hyperparameter for the seed

struct JobConfig {
  ClassifierSettings settings;
  contract::Resources resources;
  int rank = 0;
  std::map<std::string, contract::ChannelConfig> channels;

  Architecture architecture() const {
    return {settings.num_layers, settings.image_shape, settings.num_classes};
  }
};

Result<void> check_channels(const JobConfig& config) {
  if (!config.channels.contains("train")) return invalid("'train' is a required property");
  for (const auto& [name, channel] : config.channels) {
    const bool list = name == "train_lst" || name == "validation_lst";
    if (!list && name != "train" && name != "validation" && name != "model")
      return invalid("Additional properties are not allowed ('" + name +
                     "' was unexpected): channels are train, validation, train_lst, "
                     "validation_lst and model");
    if (channel.input_mode == "Pipe")
      return invalid("channel " + name +
                     ": input mode Pipe is not supported: use File or FastFile");
    if (name == "model" || list) continue;
    const std::string& type = channel.content_type;
    if (!type.empty() && type != kRecords && !type.starts_with(kImage))
      return invalid("channel " + name + ": '" + type + "' is not one of ['" +
                     std::string(kRecords) + "', '" + std::string(kImage) + "']");
    if (type.starts_with(kImage) && !config.channels.contains(name + "_lst"))
      return invalid("channel " + name + " has images: the channel " + name +
                     "_lst with their list is missing");
    if (type.starts_with(kImage) && config.settings.resize == 0)
      return invalid("hyperparameter resize is required with content type " + std::string(kImage));
  }
  return ok();
}

Result<JobConfig> read_config(const std::string& base) {
  const auto read = [&](const char* name) {
    return os::read_file(base + "/input/config/" + name, kConfigBytesMax);
  };
  JobConfig config;
  config.resources = TRY(contract::read_resources(TRY(read("resourceconfig.json"))));
  config.settings = TRY(parse_classifier_settings(
      TRY(contract::read_hyperparameters(TRY(read("hyperparameters.json"))))));
  for (auto& each : TRY(contract::read_channels(TRY(read("inputdataconfig.json")))))
    config.channels[each.name] = each;
  const auto& hosts = config.resources.hosts;
  config.rank =
      int(std::find(hosts.begin(), hosts.end(), config.resources.current_host) - hosts.begin());
  TRY(check_channels(config));
  return config;
}

Result<images::Collection> open_collection(const std::string& base,
                                           const contract::ChannelConfig& channel) {
  const std::string folder = base + "/input/data/" + channel.name;
  if (!channel.content_type.starts_with(kImage)) return images::Collection::open_records(folder);
  return images::Collection::open_lists(folder + "_lst", folder,
                                        channel.distribution == "ShardedByS3Key"
                                            ? images::MissingFiles::are_elsewhere
                                            : images::MissingFiles::are_errors);
}

Result<Channel> open_channel(const std::string& base, const std::string& name,
                             const JobConfig& config, Group& group, const Print& print) {
  Channel channel;
  channel.collection = TRY(open_collection(base, config.channels.at(name)));
  TRY(check_labels(channel.collection, config.settings.num_classes));
  const auto lists =
      TRY(group.all_gather(encode({channel.collection.size(), channel.collection.digest()})));
  channel.shares = TRY(decode_shares(lists, config.rank, config.resources.hosts));
  print("channel " + name + ": " + std::to_string(channel.shares.own) + " images on host " +
        config.resources.current_host + ", " + std::to_string(channel.shares.all) +
        " on all hosts" + (channel.shares.replicated ? "" : ", each with images of its own"));
  return channel;
}

void print_parameters(const ClassifierSettings& settings, const Print& print) {
  print("---- Parameters ----");
  print("num_layers: " + std::to_string(settings.num_layers));
  print("data type: float32");
  print("epochs: " + std::to_string(settings.epochs));
  print("optimizer: " + std::string(to_string(settings.optimizer.method)));
  print("learning_rate: " + std::to_string(settings.learning_rate));
  print("num_training_samples: " + std::to_string(settings.num_training_samples));
  print("mini_batch_size: " + std::to_string(settings.mini_batch_size));
  print("image_shape: " + to_string(settings.image_shape));
  print("num_classes: " + std::to_string(settings.num_classes));
  print("--------------------");
}

std::string checkpoint_name(int64_t epoch) {
  if (epoch == 0) return std::string(kClassifierFile);
  char name[64];
  std::snprintf(name, sizeof name, "image-classification-%04lld.safetensors", (long long)epoch);
  return name;
}

// Divides the processors among the ranks of this machine. Small batches use fewer threads: these
// wait for each other after each layer, which costs more than it gains, above all on a loaded
// machine.
void use_processors(const Group& group, const ClassifierSettings& settings, int cpus) {
  const auto& hosts = group.hosts();
  const auto local = std::count(hosts.begin(), hosts.end(), hosts[size_t(group.rank())]);
  const int64_t pixels =
      settings.mini_batch_size * settings.image_shape.height * settings.image_shape.width;
  const int64_t useful = std::max<int64_t>(1, pixels / kPixelsOfThreadMin);
  at::set_num_threads(int(std::min<int64_t>(useful, std::max(1, cpus / int(local)))));
}

Result<void> train(const ClassifierJobOptions& options, const JobConfig& config, Group& group,
                   Clock& clock, const std::atomic<bool>& stop, const Print& print) {
  const ClassifierSettings& settings = config.settings;
  use_processors(group, settings, options.cpus);
  if (group.rank() == 0) print_parameters(settings, print);
  Channel train =
      TRY(open_channel(options.base, "train", config, group, print).in("channel train"));
  if (settings.num_training_samples != int64_t(train.shares.all))
    print("num_training_samples is " + std::to_string(settings.num_training_samples) +
          ", but the channel train has " + std::to_string(train.shares.all) +
          " images: an epoch has these");
  std::optional<Channel> validation;
  if (config.channels.contains("validation"))
    validation = TRY(
        open_channel(options.base, "validation", config, group, print).in("channel validation"));

  auto network = std::make_unique<ResNet>(settings.num_layers, settings.image_shape,
                                          settings.num_classes, kSeed);
  if (config.channels.contains("model"))
    TRY(load_weights(options.base + "/input/data/model/" + std::string(kClassifierFile),
                     config.architecture(), *network)
            .in("channel model"));
  TrainerOptions trainer_options;
  trainer_options.settings = settings;
  trainer_options.seed = kSeed;
  trainer_options.print = print;
  trainer_options.save = [&](const ResNet& trained, int64_t epoch) -> Result<void> {
    const std::string path = options.base + "/model/" + checkpoint_name(epoch);
    TRY(save_classifier(config.architecture(), trained, path).in("saving the model"));
    print("Saved checkpoint to \"" + path + "\"");
    return ok();
  };
  auto trainer =
      TRY(ClassifierTrainer::make(std::move(trainer_options), std::move(train),
                                  std::move(validation), std::move(network), group, clock));
  return trainer->run(stop);
}

Result<void> join_and_train(const ClassifierJobOptions& options, Clock& clock,
                            const std::atomic<bool>& stop, const Print& print) {
  const JobConfig config = TRY(read_config(options.base));
  collectives::TcpOptions tcp;
  for (const std::string& host : config.resources.hosts)
    tcp.endpoints.push_back({host, kClassifierPort});
  tcp.rank = config.rank;
  tcp.group.activity = {options.activity, config.rank};
  tcp.group.deterministic = true;
  tcp.shared_value = options.shared_value.substr(0, collectives::TcpOptions::kSharedValueBytesMax);
  collectives::StopLimit limit(stop, clock, kClassifierStopTimeout);
  tcp.cancelled = [&] { return limit.is_exceeded(); };
  auto group = collectives::join_over_tcp(std::move(tcp));
  limit.joined();
  if (!group && stop) {
    print("stopped before the first step");
    return ok();
  }
  if (!group) return std::move(group).error();
  auto done = train(options, config, **group, clock, stop, print);
  // Makes the other ranks fail at once, with the same message.
  if (!done) (*group)->abandon(done.error().message);
  return done;
}

}  // namespace

Result<void> run_classifier_job(const ClassifierJobOptions& options, Clock& clock,
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

}  // namespace trainyard::algorithms
