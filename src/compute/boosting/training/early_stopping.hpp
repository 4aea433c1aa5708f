// EarlyStopping watches a metric, stores its best round, and decides when training stops.
//
// Threads: confined to one. Errors: none.
#pragma once

#include <cstdint>

namespace trainyard::boosting {

class EarlyStopping {
 public:
  // `rounds_max`: rounds without a better value after which training stops; 0: never.
  EarlyStopping(int64_t rounds_max, bool maximized)
      : rounds_max_(rounds_max), maximized_(maximized) {}

  // Returns true for the best value so far. NaN never counts as better.
  bool add(int64_t round, double value) {
    last_round_ = round;
    const bool better = maximized_ ? value > best_value_ : value < best_value_;
    if (!(better || (best_round_ < 0 && value == value))) return false;
    resume(round, value);
    return true;
  }
  // Restores the best round of an earlier run, from a checkpoint.
  void resume(int64_t round, double value) {
    best_round_ = round;
    best_value_ = value;
  }
  void set_maximized(bool maximized) { maximized_ = maximized; }
  bool stops() const { return rounds_max_ > 0 && last_round_ - best_round_ >= rounds_max_; }
  int64_t best_round() const { return best_round_; }  // -1: none
  double best_value() const { return best_value_; }

 private:
  int64_t rounds_max_;
  bool maximized_;
  int64_t last_round_ = -1, best_round_ = -1;
  double best_value_ = 0;
};

}  // namespace trainyard::boosting
