#include "boosting/job_config.hpp"

#include <algorithm>

#include "base/json.hpp"
#include "os/files.hpp"

namespace trainyard::boosting {
namespace {

constexpr size_t kConfigBytesMax = 1 << 20;  // AWS allows 100 hyperparameters of 2,500 characters

Result<ChannelPlan> plan_channel(const std::string& base, const contract::ChannelConfig& given,
                                 const BoostingConfig& config, uint64_t memory) {
  const BoostingSettings& settings = config.settings;
  ChannelPlan plan;
  plan.source = {base + "/input/data", given.name, given.input_mode == "Pipe"};
  plan.decoder.format = TRY(parse_table_format(given.content_type));
  if (plan.source.is_pipe && plan.decoder.format == TableFormat::libsvm)
    return invalid("Pipe mode not supported for LibSVM.");
  plan.decoder.labels = label_rule(settings.objective, settings.classes);
  plan.decoder.memory = memory;
  plan.decoder.training.max_bin = settings.max_bin;
  const auto method = settings.parameters.find("tree_method");
  plan.decoder.training.is_exact = method != settings.parameters.end() && method->second == "exact";
  const bool is_train = given.name == "train";
  // By AWS's documentation, weights are the second column of the training data only. A cross
  // validation uses the rows of both channels.
  plan.decoder.has_weights = settings.has_csv_weights && (is_train || settings.folds > 0) &&
                             plan.decoder.format == TableFormat::csv;
  // If all hosts have the same validation channel, each evaluates all of its rows, so the metrics
  // equal those of one host. The rows of the channel `train` are divided.
  if (given.distribution != "ShardedByS3Key" && (is_train || settings.folds > 0)) {
    plan.decoder.rank = uint64_t(config.rank);
    plan.decoder.ranks = config.resources.hosts.size();
  }
  return plan;
}

Result<void> read_channels(const std::string& base, std::string_view json, uint64_t memory,
                           BoostingConfig& config) {
  for (const auto& each : TRY(contract::read_channels(json))) {
    if (each.name == "model") {
      config.model_directory = base + "/input/data/model";
    } else if (each.name == "train" || each.name == "validation") {
      config.channels[each.name] =
          TRY(plan_channel(base, each, config, memory).in("channel " + each.name));
    } else if (each.name != "code") {  // SageMaker's image accepts this channel, for scripts
      return invalid("Extraneous channel found: " + each.name);
    }
  }
  if (!config.channels.contains("train")) return invalid("Missing required channel: train");
  if (config.settings.folds > 0 && config.settings.objective.starts_with("rank:"))
    return invalid(
        "Hyperparameter _kfold: ranking has no cross validation, which would split groups");
  return ok();
}

// Rejects settings that the library supports on one host only.
Result<void> check_hosts(const BoostingConfig& config) {
  if (config.resources.hosts.size() < 2) return ok();
  if (config.settings.objective == "survival:cox")
    return invalid("Hyperparameter objective: survival:cox trains on one host only");
  const auto method = config.settings.parameters.find("tree_method");
  if (method != config.settings.parameters.end() && method->second == "exact")
    return invalid("Hyperparameter tree_method: exact trains on one host only: use hist or approx");
  return ok();
}

}  // namespace

Result<BoostingConfig> read_boosting_config(const std::string& base, uint64_t memory) {
  const auto read = [&](const char* name) {
    return os::read_file(base + "/input/config/" + name, kConfigBytesMax);
  };
  BoostingConfig config;
  config.resources = TRY(contract::read_resources(TRY(read("resourceconfig.json"))));
  config.settings = TRY(parse_boosting_settings(
      TRY(contract::read_hyperparameters(TRY(read("hyperparameters.json"))))));
  const auto& hosts = config.resources.hosts;
  config.rank =
      int(std::find(hosts.begin(), hosts.end(), config.resources.current_host) - hosts.begin());
  TRY(read_channels(base, TRY(read("inputdataconfig.json")), memory, config));
  TRY(check_hosts(config));
  if (os::exists(base + "/input/config/checkpointconfig.json")) {
    const Json checkpoints = TRY(parse_json(TRY(read("checkpointconfig.json"))));
    config.checkpoints = TRY(string_at(checkpoints, "LocalPath").in("checkpointconfig.json"));
  }
  return config;
}

}  // namespace trainyard::boosting
