// sim runs simulations of a cluster (simulation.hpp).
//
//   sim --seeds N [--first S]   runs N simulations; stops at the first that fails and prints the
//                               command that repeats it
//   sim --seed N                runs one and prints its trace
#include <csignal>
#include <cstdio>
#include <string>

#include "base/log.hpp"
#include "base/text.hpp"
#include "sim/simulation.hpp"

namespace {

// Log lines of the program appear between the lines of the trace, which contain the time.
class NoClock final : public trainyard::Clock {
 public:
  trainyard::Instant now() override { return {}; }
  std::chrono::nanoseconds monotonic() override { return {}; }
};

// The seed that a failed CHECK reports.
uint64_t present_seed = 0;
const char* program = "sim";
void say_seed(int) {
  std::printf("seed %lu: aborted\nrepeat with: %s --seed %lu\n",
              static_cast<unsigned long>(present_seed), program,
              static_cast<unsigned long>(present_seed));
  std::fflush(stdout);
}

int usage() {
  std::fprintf(stderr, "sim --seeds N [--first S] | sim --seed N\n");
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace trainyard;
  uint64_t seeds = 0, first = 1, seed = 0;
  bool one = false;
  for (int i = 1; i + 1 < argc; i += 2) {
    const auto number = parse_int(argv[i + 1]);
    if (!number || *number < 0) return usage();
    const std::string name = argv[i];
    if (name == "--seeds")
      seeds = uint64_t(*number);
    else if (name == "--first")
      first = uint64_t(*number);
    else if (name == "--seed")
      seed = uint64_t(*number), one = true;
    else
      return usage();
  }
  if (argc % 2 == 0 || (seeds == 0) == !one) return usage();

  sim::Outcome total;
  if (one) first = seed, seeds = 1;
  static NoClock clock;
  set_log(
      [one](Level, std::string_view line) {
        if (one) std::printf("           %s\n", std::string(line).c_str());
      },
      clock, Level::debug);
  program = argv[0];
  std::signal(SIGABRT, say_seed);
  for (uint64_t each = first; each < first + seeds; ++each) {
    present_seed = each;
    const sim::Outcome outcome = sim::simulate(each, one);
    if (outcome.failure) {
      std::printf("seed %lu: %s\nrepeat with: %s --seed %lu\n", static_cast<unsigned long>(each),
                  outcome.failure->c_str(), argv[0], static_cast<unsigned long>(each));
      return 1;
    }
    total.events += outcome.events;
    total.crashes += outcome.crashes;
    total.jobs += outcome.jobs;
    total.completed += outcome.completed;
    total.failed += outcome.failed;
    total.stopped += outcome.stopped;
  }
  std::printf(
      "%lu seeds: %lu jobs (%lu completed, %lu failed, %lu stopped), %lu server crashes, %lu "
      "events\n",
      static_cast<unsigned long>(seeds), static_cast<unsigned long>(total.jobs),
      static_cast<unsigned long>(total.completed), static_cast<unsigned long>(total.failed),
      static_cast<unsigned long>(total.stopped), static_cast<unsigned long>(total.crashes),
      static_cast<unsigned long>(total.events));
  return 0;
}
