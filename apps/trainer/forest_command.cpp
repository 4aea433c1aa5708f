#include "trainer/forest_command.hpp"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <string_view>
#include <thread>

#include "algorithm_program.hpp"
#include "base/activity_table.hpp"
#include "contract/log_line.hpp"
#include "forest/job.hpp"
#include "forest/model_file.hpp"
#include "forest/predict.hpp"
#include "os/environment.hpp"
#include "os/files.hpp"
#include "os/machine_clock.hpp"

namespace trainyard::apps {
namespace {

constexpr std::string_view kUsage =
    "trainyard-trainer randomcutforest train [--base DIR]    train as one host of a job (default "
    "DIR: /opt/ml)\n"
    "trainyard-trainer randomcutforest --predict --model DIR FILE..\n"
    "  print scores of the rows of files; \"-\" is the standard input\n"
    "  [--content-type text/csv|application/json|application/jsonlines|"
    "application/x-recordio-protobuf]\n"
    "  [--accept application/json|application/jsonlines|application/x-recordio-protobuf]\n"
    "  [--attribution] adds the contribution of each feature to the score\n"
    "  [--update] learns each row after its score\n";

std::atomic<bool> forest_stop = false;

Result<int> train_forest(const std::string& base) {
  std::signal(SIGTERM, [](int) { forest_stop = true; });
  std::signal(SIGINT, [](int) { forest_stop = true; });
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // readers of the log see each line at once
  os::MachineClock clock;
  forest::ForestJobOptions options;
  options.base = base;
  options.shared_value = shared_value_of_job();
  options.activity = os::environment_variable(kActivityVariable);
  options.cpus = int(std::max(1u, std::thread::hardware_concurrency()));
  options.memory = memory_of_machine();
  TRY(forest::run_forest_job(options, clock, forest_stop, [&](std::string_view text) {
    std::printf("%s\n", contract::log_line(clock.now(), text).c_str());
  }));
  return 0;
}

Result<int> predict_rows(const Arguments& arguments) {
  const std::string path = arguments.option("--model", "") + "/" + std::string(forest::kForestFile);
  forest::Forest model =
      TRY(forest::decode_forest(TRY(os::read_file(path, forest::kModelBytesMax).in("--model")))
              .in(path));
  forest::PredictOptions options;
  options.content_type = arguments.option("--content-type", options.content_type);
  options.accept = arguments.option("--accept", options.accept);
  options.attribution = arguments.flags.contains("--attribution");
  options.update = arguments.flags.contains("--update");
  for (const std::string& file : arguments.others) {
    const std::string reply =
        TRY(forest::predict(model, TRY(read_request(file, forest::kRequestBytesMax)), options)
                .in(file));
    std::fwrite(reply.data(), 1, reply.size(), stdout);
  }
  return 0;
}

}  // namespace

Result<int> run_forest_command(const std::vector<std::string>& arguments) {
  const Arguments parsed =
      TRY(parse_arguments(arguments, {"--predict", "--attribution", "--update"},
                          {"--base", "--model", "--content-type", "--accept"}));
  if (parsed.flags.contains("--predict") && parsed.options.contains("--model"))
    return predict_rows(parsed);
  if (parsed.flags.empty() && parsed.others == std::vector<std::string>{"train"}) {
    return train_forest(parsed.option("--base", "/opt/ml"));
  }
  std::fputs(std::string(kUsage).c_str(), stderr);
  return 2;
}

}  // namespace trainyard::apps
