// trainyard-xgboost runs SageMaker's algorithm XGBoost in a job, and scores with its models.
//
//   trainyard-xgboost train [--base DIR]
//   trainyard-xgboost --predict --model DIR [--content-type TYPE] [--accept TYPE] FILE..
//   trainyard-xgboost tracker --host HOST [--port PORT] --workers N
#include <algorithm>
#include <atomic>
#include <cctype>
#include <csignal>
#include <cstdio>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "algorithm_program.hpp"
#include "base/activity_table.hpp"
#include "base/text.hpp"
#include "boosting/job.hpp"
#include "boosting/predict.hpp"
#include "contract/log_line.hpp"
#include "os/environment.hpp"
#include "os/files.hpp"
#include "os/machine_clock.hpp"
#include "rabit/tracker.hpp"

namespace {

using namespace trainyard;

constexpr std::string_view kUsage =
    "trainyard-xgboost train [--base DIR]    train as one host of a job (default DIR: /opt/ml)\n"
    "trainyard-xgboost --predict --model DIR FILE..\n"
    "  print predictions of the rows of files; \"-\" is the standard input\n"
    "  [--content-type text/csv|text/libsvm|application/x-recordio-protobuf]\n"
    "  [--accept text/csv|application/json|application/jsonlines]\n"
    "trainyard-xgboost tracker --host HOST [--port PORT] --workers N\n"
    "  serve as the tracker of N workers of XGBoost 1.7, and end with them (default PORT: 9099)\n";

std::atomic<bool> stop = false;

// Returns the memory of the machine, or the lower limit of the control group.
uint64_t memory_of_host() {
  uint64_t memory = apps::memory_of_machine();
  if (const auto text = os::read_file("/sys/fs/cgroup/memory.max", 64); text) {
    const auto limit = parse_int(trim(*text));
    if (limit && *limit > 0) memory = std::min(memory, uint64_t(*limit));
  }
  return memory;
}

// Prints metric lines without a prefix, as in SageMaker's logs: "[3]#011train-rmse:1.50000".
bool is_metric_line(std::string_view text) {
  return text.size() > 1 && text[0] == '[' && std::isdigit(static_cast<unsigned char>(text[1]));
}

void catch_signals() {
  std::signal(SIGTERM, [](int) { stop = true; });
  std::signal(SIGINT, [](int) { stop = true; });
}

Result<int> train(const apps::Arguments& line) {
  catch_signals();
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // readers of the log see each line at once
  os::MachineClock clock;
  boosting::BoostingJobOptions options;
  options.base = line.option("--base", "/opt/ml");
  options.shared_value = apps::shared_value_of_job();
  options.activity = os::environment_variable(kActivityVariable);
  options.cpus = int(std::max(1u, std::thread::hardware_concurrency()));
  options.memory = memory_of_host();
  TRY(boosting::run_boosting_job(options, clock, stop, [&](std::string_view text) {
    std::printf("%s\n", is_metric_line(text) ? std::string(text).c_str()
                                             : contract::log_line(clock.now(), text).c_str());
  }));
  return 0;
}

Result<int> predict(const apps::Arguments& line) {
  const auto model = TRY(boosting::load_stored_model(line.option("--model", "")).in("--model"));
  boosting::PredictOptions options;
  options.content_type = line.option("--content-type", options.content_type);
  options.accept = line.option("--accept", options.accept);
  options.threads = int(std::max(1u, std::thread::hardware_concurrency()));
  for (const std::string& file : line.others) {
    const std::string reply = TRY(
        boosting::predict(model, TRY(apps::read_request(file, boosting::kRequestBytesMax)), options)
            .in(file));
    std::fwrite(reply.data(), 1, reply.size(), stdout);
  }
  return 0;
}

Result<int> track(const apps::Arguments& line) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  os::MachineClock clock;
  rabit::TrackerOptions options;
  const int64_t port =
      TRY(parse_int(line.option("--port", std::to_string(boosting::kTrackerPort))).in("--port"));
  if (port < 0 || port > UINT16_MAX) return invalid("--port: it must be from 0 to 65535");
  options.endpoint = {line.option("--host", ""), uint16_t(port)};
  const int64_t workers = TRY(parse_int(line.option("--workers", "")).in("--workers"));
  options.workers = int(std::clamp<int64_t>(workers, 0, INT32_MAX));
  options.print = [](std::string_view text) {
    std::printf("%.*s\n", int(text.size()), text.data());
  };
  auto tracker = TRY(rabit::Tracker::start(std::move(options), clock));
  std::printf("DMLC_TRACKER_URI=%s\nDMLC_TRACKER_PORT=%u\n", line.option("--host", "").c_str(),
              unsigned(tracker->port()));
  TRY(tracker->wait());
  return 0;
}

Result<int> run(const std::vector<std::string>& arguments) {
  const apps::Arguments line = TRY(apps::parse_arguments(
      arguments, {"--predict"},
      {"--base", "--model", "--content-type", "--accept", "--host", "--port", "--workers"}));
  if (!line.flags.empty() && line.options.contains("--model")) return predict(line);
  if (line.flags.empty() && line.others == std::vector<std::string>{"train"}) return train(line);
  if (line.flags.empty() && line.others == std::vector<std::string>{"tracker"} &&
      line.options.contains("--host"))
    return track(line);
  std::fputs(std::string(kUsage).c_str(), stderr);
  return 2;
}

// Called as `train`, the command of its image, the program needs no argument.
Result<int> run(int argc, char** argv) {
  const std::string_view name = argc > 0 ? argv[0] : "";
  const std::string_view file = name.substr(name.rfind('/') + 1);
  if (argc == 1 && file == "train") return train({});
  return run(std::vector<std::string>(argv + std::min(argc, 1), argv + argc));
}

}  // namespace

int main(int argc, char** argv) {
  const auto code = run(argc, argv);
  if (code) return *code;
  std::fprintf(stderr, "trainyard-xgboost: %s\n", code.error().message.c_str());
  return 1;
}
