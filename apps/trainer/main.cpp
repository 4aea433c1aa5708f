// trainyard-trainer runs the built-in trainer in a job, and uses and compares its models.
//
//   trainyard-trainer train [--base DIR]                    trains as one host of a job (default
//                                                           DIR: /opt/ml)
//   trainyard-trainer predict --model DIR --csv FILE        evaluates a model [--show N: prints N
//                                                           images]
//   trainyard-trainer compare DIR DIR [--tolerance NUMBER]  compares the weights of two models
//   trainyard-trainer randomcutforest ..                    SageMaker's algorithm of this name:
//                                                           forest_command.hpp
#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "algorithm_program.hpp"
#include "base/activity_table.hpp"
#include "base/text.hpp"
#include "os/environment.hpp"
#include "os/files.hpp"
#include "os/machine_clock.hpp"
#include "train/evaluate.hpp"
#include "train/job.hpp"
#include "train/shards.hpp"
#include "trainer/forest_command.hpp"

namespace {

using namespace trainyard;

constexpr std::string_view kUsage =
    "trainyard-trainer train [--base DIR]                    train as one host of a job (default "
    "DIR: /opt/ml)\n"
    "trainyard-trainer predict --model DIR --csv FILE        evaluate a model [--show N: print N "
    "images]\n"
    "trainyard-trainer compare DIR DIR [--tolerance NUMBER]  compare the weights of two models\n"
    "trainyard-trainer randomcutforest ..                    train and use a random cut forest\n";

std::atomic<bool> stop = false;

Result<int> train_job(const apps::Arguments& line) {
  std::signal(SIGTERM, [](int) { stop = true; });
  std::signal(SIGINT, [](int) { stop = true; });
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // readers of the log see each line at once
  os::MachineClock clock;
  const train::JobOptions options{line.option("--base", "/opt/ml"), apps::shared_value_of_job(),
                                  os::environment_variable(kActivityVariable),
                                  os::environment_variable(train::kTimelinesVariable)};
  TRY(train::run_job(options, clock, stop, [](std::string_view text) {
    std::printf("%.*s\n", int(text.size()), text.data());
  }));
  return 0;
}

Result<int> predict(const apps::Arguments& line) {
  const auto model = TRY(train::load_model(line.option("--model", "")).in("--model"));
  const std::string path = line.option("--csv", "");
  const auto table =
      TRY(train::parse_csv(TRY(os::read_file(path, train::kShardBytesMax).in("--csv"))).in(path));
  const auto evaluation = TRY(train::evaluate(model, table));
  const auto show = size_t(TRY(parse_int(line.option("--show", "4")).in("--show")));
  if (model.image_width > 0 && show > 0) {
    std::printf(
        "%s",
        train::draw_predictions(model, table, evaluation, train::first_rows(table, show)).c_str());
    const auto mistakes = train::first_mistakes(table, evaluation, show);
    if (!mistakes.empty()) {
      std::printf("wrong predictions:\n\n%s",
                  train::draw_predictions(model, table, evaluation, mistakes).c_str());
    }
  }
  std::printf("rows=%zu correct=%zu accuracy=%.4f\n", table.rows(), evaluation.correct,
              evaluation.accuracy());
  return 0;
}

Result<int> compare(const apps::Arguments& line) {
  if (line.others.size() != 3) return invalid("compare needs two model directories");
  const auto first = TRY(train::load_model(line.others[1]));
  const auto second = TRY(train::load_model(line.others[2]));
  const auto difference = TRY(train::compare(first, second));
  std::printf("largest_relative_difference=%.3g largest_absolute_difference=%.3g tensor=%s\n",
              difference.relative, difference.absolute,
              difference.tensor.empty() ? "none" : difference.tensor.c_str());
  const double tolerance = TRY(parse_double(line.option("--tolerance", "inf")).in("--tolerance"));
  return difference.relative <= tolerance ? 0 : 1;
}

Result<int> run(const apps::Arguments& line) {
  const std::string command = line.others.empty() ? "" : line.others[0];
  if (command == "train") return train_job(line);
  if (command == "predict") return predict(line);
  if (command == "compare") return compare(line);
  std::fputs(std::string(kUsage).c_str(), command == "help" ? stdout : stderr);
  return command == "help" ? 0 : 2;
}

Result<int> run(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "randomcutforest")
    return apps::run_forest_command({argv + 2, argv + argc});
  return run(TRY(apps::parse_arguments({argv + std::min(argc, 1), argv + argc}, {},
                                       {"--base", "--model", "--csv", "--show", "--tolerance"})));
}

}  // namespace

int main(int argc, char** argv) {
  const auto code = run(argc, argv);
  if (code) return *code;
  std::fprintf(stderr, "trainyard-trainer: %s\n", code.error().message.c_str());
  return 1;
}
