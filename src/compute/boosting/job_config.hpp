// Reads the configuration of one host of an XGBoost job.
//
// Threads: confined to one. Errors: those of files; invalid, with SageMaker's texts.
#pragma once

#include <map>
#include <string>

#include "base/result.hpp"
#include "boosting/rows/channel_table.hpp"
#include "boosting/rows/table_decoder.hpp"
#include "boosting/settings.hpp"
#include "contract/contract.hpp"

namespace trainyard::boosting {

struct ChannelPlan {
  ChannelSource source;
  DecoderOptions decoder;
};

struct BoostingConfig {
  BoostingSettings settings;
  contract::Resources resources;
  int rank = 0;
  std::map<std::string, ChannelPlan> channels;  // train, validation
  std::string model_directory;                  // of the channel `model`; "": the job has none
  std::string checkpoints;                      // the directory; "": the job keeps none
};

// Reads the files of the configuration. `memory` is the bytes of this host; 0: unknown.
Result<BoostingConfig> read_boosting_config(const std::string& base, uint64_t memory);

}  // namespace trainyard::boosting
