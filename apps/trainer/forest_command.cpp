#include "trainer/forest_command.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <string_view>
#include <thread>

#include "base/activity_table.hpp"
#include "contract/log_line.hpp"
#include "forest/job.hpp"
#include "forest/model_file.hpp"
#include "forest/predict.hpp"
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

struct ForestArguments {
  std::set<std::string> flags;
  std::map<std::string, std::string> options;
  std::vector<std::string> others;
};

Result<ForestArguments> parse_arguments(const std::vector<std::string>& arguments) {
  const std::set<std::string> flags = {"--predict", "--attribution", "--update"};
  const std::set<std::string> options = {"--base", "--model", "--content-type", "--accept"};
  ForestArguments parsed;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (flags.contains(argument)) {
      parsed.flags.insert(argument);
    } else if (options.contains(argument)) {
      if (i + 1 == arguments.size()) return invalid(argument + " needs a value");
      parsed.options[argument] = arguments[++i];
    } else if (argument.starts_with("--")) {
      return invalid("unknown option " + argument);
    } else {
      parsed.others.push_back(argument);
    }
  }
  return parsed;
}

std::string value_of(const char* variable) {
  const char* value = std::getenv(variable);
  return value ? value : "";
}

uint64_t memory_of_machine() {
  const long pages = ::sysconf(_SC_PHYS_PAGES), bytes = ::sysconf(_SC_PAGESIZE);
  return pages > 0 && bytes > 0 ? uint64_t(pages) * uint64_t(bytes) : 0;
}

Result<int> train_forest(const std::string& base) {
  std::signal(SIGTERM, [](int) { forest_stop = true; });
  std::signal(SIGINT, [](int) { forest_stop = true; });
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // readers of the log see each line at once
  os::MachineClock clock;
  forest::ForestJobOptions options;
  options.base = base;
  options.shared_value = value_of("TRAINING_JOB_ARN");
  if (options.shared_value.empty()) options.shared_value = value_of("TRAINING_JOB_NAME");
  options.activity = value_of(kActivityVariable);
  options.cpus = int(std::max(1u, std::thread::hardware_concurrency()));
  options.memory = memory_of_machine();
  TRY(forest::run_forest_job(options, clock, forest_stop, [&](std::string_view text) {
    std::printf("%s\n", contract::log_line(clock.now(), text).c_str());
  }));
  return 0;
}

Result<std::string> read_request(const std::string& path) {
  if (path != "-") return os::read_file(path, forest::kRequestBytesMax);
  std::string request;
  char piece[1 << 16];
  while (const size_t count = std::fread(piece, 1, sizeof piece, stdin)) {
    request.append(piece, count);
    if (request.size() > forest::kRequestBytesMax)
      return exhausted("the request exceeds " + std::to_string(forest::kRequestBytesMax) +
                       " bytes");
  }
  return request;
}

Result<int> predict_rows(const ForestArguments& arguments) {
  const auto option = [&](const char* name, std::string otherwise) {
    const auto found = arguments.options.find(name);
    return found == arguments.options.end() ? otherwise : found->second;
  };
  const std::string path = option("--model", "") + "/" + std::string(forest::kForestFile);
  forest::Forest model =
      TRY(forest::decode_forest(TRY(os::read_file(path, forest::kModelBytesMax).in("--model")))
              .in(path));
  forest::PredictOptions options;
  options.content_type = option("--content-type", options.content_type);
  options.accept = option("--accept", options.accept);
  options.attribution = arguments.flags.contains("--attribution");
  options.update = arguments.flags.contains("--update");
  for (const std::string& file : arguments.others) {
    const std::string reply =
        TRY(forest::predict(model, TRY(read_request(file)), options).in(file));
    std::fwrite(reply.data(), 1, reply.size(), stdout);
  }
  return 0;
}

}  // namespace

Result<int> run_forest_command(const std::vector<std::string>& arguments) {
  const ForestArguments parsed = TRY(parse_arguments(arguments));
  if (parsed.flags.contains("--predict") && parsed.options.contains("--model"))
    return predict_rows(parsed);
  if (parsed.flags.empty() && parsed.others == std::vector<std::string>{"train"}) {
    const auto base = parsed.options.find("--base");
    return train_forest(base == parsed.options.end() ? "/opt/ml" : base->second);
  }
  std::fputs(std::string(kUsage).c_str(), stderr);
  return 2;
}

}  // namespace trainyard::apps
