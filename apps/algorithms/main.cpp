// trainyard-algorithms runs a built-in algorithm in a job, and scores with its models.
//
//   trainyard-algorithms image-classification train [--base DIR]
//   trainyard-algorithms image-classification --predict --model DIR IMAGE..
#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "algorithm_program.hpp"
#include "algorithms/image_classification/job.hpp"
#include "algorithms/image_classification/predict.hpp"
#include "base/activity_table.hpp"
#include "contract/log_line.hpp"
#include "os/environment.hpp"
#include "os/machine_clock.hpp"

namespace {

using namespace trainyard;

constexpr std::string_view kUsage =
    "trainyard-algorithms image-classification train [--base DIR]            train as one host of "
    "a job (default DIR: /opt/ml)\n"
    "trainyard-algorithms image-classification --predict --model DIR IMAGE.. print a line of JSON "
    "for each image\n";

std::atomic<bool> stop = false;

Result<int> train(const std::string& base) {
  std::signal(SIGTERM, [](int) { stop = true; });
  std::signal(SIGINT, [](int) { stop = true; });
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // readers of the log see each line at once
  os::MachineClock clock;
  algorithms::ClassifierJobOptions options;
  options.base = base;
  options.shared_value = apps::shared_value_of_job();
  options.activity = os::environment_variable(kActivityVariable);
  options.cpus = int(std::max(1u, std::thread::hardware_concurrency()));
  TRY(algorithms::run_classifier_job(options, clock, stop, [&](std::string_view text) {
    std::printf("%s\n", contract::log_line(clock.now(), text).c_str());
  }));
  return 0;
}

Result<int> predict(const std::string& model, const std::vector<std::string>& paths) {
  TRY(algorithms::print_predictions(model, paths, [](std::string_view line) {
    std::printf("%.*s\n", int(line.size()), line.data());
  }));
  return 0;
}

Result<int> run(const std::vector<std::string>& arguments) {
  std::string base = "/opt/ml", model;
  bool predicts = false;
  std::vector<std::string> others;
  for (size_t i = 1; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    const bool takes_value = argument == "--base" || argument == "--model";
    if (takes_value && i + 1 == arguments.size()) return invalid(argument + " needs a value");
    if (takes_value) {
      (argument == "--base" ? base : model) = arguments[++i];
    } else if (argument == "--predict") {
      predicts = true;
    } else {
      others.push_back(argument);
    }
  }
  const bool known = !arguments.empty() && arguments[0] == "image-classification";
  if (known && predicts && !model.empty()) return predict(model, others);
  if (known && !predicts && others == std::vector<std::string>{"train"}) return train(base);
  std::fputs(std::string(kUsage).c_str(), stderr);
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  const auto code = run({argv + 1, argv + argc});
  if (code) return *code;
  std::fprintf(stderr, "trainyard-algorithms: %s\n", code.error().message.c_str());
  return 1;
}
